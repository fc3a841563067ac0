"""Pairs of QuantizeLinear and DequantizeLinear: where an engine needs them, and how they are inserted."""
