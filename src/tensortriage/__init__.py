"""TensorTriage: why an ONNX model gives wrong numbers on an inference engine."""

__version__ = "0.1.0"
