"""PyTorch, in a worker process: the network behind an ONNX model as an engine."""
