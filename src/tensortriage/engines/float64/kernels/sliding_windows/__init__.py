"""Operators that slide a window over positions: convolution and pooling."""
