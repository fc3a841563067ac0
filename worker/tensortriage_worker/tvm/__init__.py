"""The adapter of TVM."""
