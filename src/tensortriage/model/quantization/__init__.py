"""Pairs of QuantizeLinear and DequantizeLinear in a model."""
