"""IREE, an MLIR compiler."""
