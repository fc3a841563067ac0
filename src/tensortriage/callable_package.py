"""Packages that are also functions: ``tensortriage.diagnose(model, target)`` is the command of the package's name."""

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """A package that is called as the function of its name in `tensortriage.functions`."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the function."""
        return self._function(*given, **named)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function)

    @property
    def _function(self) -> Any:
        return getattr(importlib.import_module("tensortriage.functions"), self.__name__.rpartition(".")[2])


def callable_package(name: str) -> None:
    """Make a package callable, from within."""
    sys.modules[name].__class__ = CallablePackage
