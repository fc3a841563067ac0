"""Quantizers of one model, the ranges they choose, and which way of choosing is best."""
