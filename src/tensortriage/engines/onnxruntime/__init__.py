"""ONNX Runtime, in this process."""
