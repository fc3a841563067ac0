"""TensorRT and TensorRT-RTX, in a worker process.

Scripts that wrap this engine import `TensorRtEngine` from here; it is loaded on first use.
"""

from typing import Any

__all__ = ["TensorRtEngine"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from tensortriage.engines.tensorrt.engine import TensorRtEngine

        return TensorRtEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
