"""Measurement of each step, and whether it is as right as a healthy engine's."""
