"""What an onnx_ir graph says: traversal, order, names, attributes, and a read-only index of it."""
