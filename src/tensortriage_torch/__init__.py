"""PyTorch: the network behind an ONNX model, as an engine, as what an export is held against, as a part of repros."""
