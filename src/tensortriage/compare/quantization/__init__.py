"""Errors of quantizers and of arithmetic in 8-bit integers."""
