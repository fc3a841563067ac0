"""A user's PyTorch network, run and exported in the interpreter that has PyTorch."""
