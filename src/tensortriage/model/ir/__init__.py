"""Contents of an onnx_ir graph: traversal, order, names, attributes, and a read-only index of it."""
