"""Public: the conformance suite, which an engine should pass; each name loads its module on first use."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortriage.testing.conformance import ConformanceReport as ConformanceReport
    from tensortriage.testing.conformance import check_engine_conformance as check_engine_conformance

__all__ = ["ConformanceReport", "check_engine_conformance"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("tensortriage.testing.conformance"), name)
