"""Public helpers for tests of engines and of what is built on them; each name loads its module on first use."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortriage.testing.conformance import ConformanceReport, check_engine_conformance

_HOMES = {
    "ConformanceReport": "tensortriage.testing.conformance",
    "check_engine_conformance": "tensortriage.testing.conformance",
}
__all__ = ["ConformanceReport", "check_engine_conformance"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
