"""The engine ``reference``: float64 arithmetic in numpy.

Scripts that wrap this engine import `ReferenceEngine` from here; it is loaded when it is asked for.
"""

from typing import Any

__all__ = ["ReferenceEngine"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from tensortriage.engines.reference.engine import ReferenceEngine

        return ReferenceEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
