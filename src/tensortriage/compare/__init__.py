"""Comparing tensors: metrics measured once, tensors aligned by name, and one place that decides "within"."""
