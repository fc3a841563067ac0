"""Public: the conformance suite, which an engine should pass; it is of the package that registers it."""

from typing import Any

from tensortriage.values.registered import registered

GROUP = "tensortriage.conformance"
"""Entry-point group of this module's further names."""


def __getattr__(name: str) -> Any:
    if name.startswith("_") or (point := registered(GROUP).get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return point.load()
