"""Names that a module re-exports and loads on first use: those that it imports for type checkers alone."""

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def deferred_names(file: str) -> dict[str, str]:
    """Return the names that a module imports below ``if TYPE_CHECKING:``, each with its home, out of its source."""
    import ast

    with open(file, encoding="utf-8") as source:
        guarded = [node for node in ast.parse(source.read()).body if isinstance(node, ast.If)]
    found = [node for guard in guarded for node in guard.body if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.name: str(node.module) for node in found for alias in node.names}


def on_first_use(module: str, file: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module."""

    def found(name: str) -> Any:
        homes = {} if name.startswith("_") else deferred_names(file)
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return found
