"""TensorTriage: why an ONNX model gives wrong numbers on an inference engine."""

from tensortriage_worker.silence import silence

__version__ = "0.1.0"

silence()  # before anything imports an engine
