"""ONNX Runtime, in this process.

Scripts that wrap this engine import `OnnxRuntimeEngine` from here; it is loaded on first use.
"""

from typing import Any

__all__ = ["OnnxRuntimeEngine"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine

        return OnnxRuntimeEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
