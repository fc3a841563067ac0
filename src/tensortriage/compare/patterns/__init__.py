"""Patterns of wrong tensors: the patterns that different mistakes leave."""
