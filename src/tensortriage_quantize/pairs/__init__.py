"""Pairs of QuantizeLinear and DequantizeLinear: where an engine wants them, and how they get there."""
