"""Comparing engines, and judging saved comparisons again."""
