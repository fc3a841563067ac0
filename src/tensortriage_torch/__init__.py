"""PyTorch: the network behind an ONNX model, as an engine, as the standard of an export, as a part of repros."""
