"""ONNX Runtime in another Python: other versions of it, and execution providers that come as plugin libraries."""
