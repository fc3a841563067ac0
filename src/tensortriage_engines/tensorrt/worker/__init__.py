"""The adapter of TensorRT: everything that touches its Python bindings."""
