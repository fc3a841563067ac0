"""The engine ``float64``: float64 arithmetic in numpy.

Scripts that wrap this engine import `Float64Engine` from here; it is loaded on first use.
"""

from typing import Any

__all__ = ["Float64Engine"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from tensortriage.engines.float64.engine import Float64Engine

        return Float64Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
