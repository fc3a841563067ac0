"""Import a package without what it imports and seldom needs; that is read when something of it is first used.

onnx_ir imports sympy for arithmetic with symbolic sizes, of which a command needs none. Reading sympy takes half of the
start-up of every command and of every process that a command starts.
"""

import importlib
import sys
import types
from typing import Any


class _Later(types.ModuleType):
    """Stands for a module; what is taken from it meanwhile stands for a function of that module."""

    def __getattr__(self, attribute: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            return _function(self.__name__, attribute)
        return getattr(importlib.import_module(self.__name__), attribute)


def _function(module: str, name: str) -> Any:
    def call(*words: Any, **named: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*words, **named)

    return call


def import_without(package: str, needless: str) -> None:
    """Import a package, and put off the import of another that it seldom needs.

    Everybody else who imports the other one gets it as ever. A package that cannot do without it for so long is
    imported plainly.
    """
    if package in sys.modules or needless in sys.modules:
        return
    before = set(sys.modules)
    stand_in = sys.modules[needless] = _Later(needless)
    try:
        importlib.import_module(package)
        return
    except Exception:
        for name in set(sys.modules) - before:
            if name == package or name.startswith(f"{package}."):
                del sys.modules[name]
    finally:
        if sys.modules.get(needless) is stand_in:
            del sys.modules[needless]
    importlib.import_module(package)
