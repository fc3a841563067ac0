"""Import a package without the rarely used imports of its own; those are loaded on first use.

onnx_ir imports sympy for arithmetic with symbolic sizes, of which a command needs none. Reading sympy takes half of the
start-up of every command and of every process that a command starts. A finder waits for the package to be imported, and
puts a stand-in in place of the other while that takes place.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import Any


def import_without(package: str, needless: str) -> None:
    """Whenever a package is imported, put off the import of another that it rarely needs.

    Everybody else who imports the other one gets it as ever. A package that cannot do without it for so long is
    imported plainly.
    """
    if package not in sys.modules and needless not in sys.modules:
        sys.meta_path.insert(0, _Finder(package, needless))


class _Later(types.ModuleType):
    """Stands in for a module; functions looked up meanwhile are loaded on their first call."""

    def __getattr__(self, attribute: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            return _function(self.__name__, attribute)
        return getattr(importlib.import_module(self.__name__), attribute)


def _function(module: str, name: str) -> Any:
    def call(*words: Any, **named: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*words, **named)

    return call


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one package once, as the other finders do, and has it loaded with a stand-in."""

    def __init__(self, package: str, needless: str) -> None:
        self._package = package
        self._needless = needless

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the package, with a loader that knows the stand-in; None for anything else."""
        if fullname != self._package:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None and self._needless not in sys.modules:
            spec.loader = _Loader(spec.loader, self._needless)
        return spec


class _Loader(importlib.abc.Loader):
    """Loads a module with its own loader, and with a stand-in for another one meanwhile."""

    def __init__(self, own: importlib.abc.Loader, needless: str) -> None:
        self._own = own
        self._needless = needless

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """Create it as ever."""
        return self._own.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the module with the stand-in; if that fails, forget its imports and run it plainly."""
        before = set(sys.modules)
        stand_in = sys.modules[self._needless] = _Later(self._needless)
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._own
        try:
            self._own.exec_module(module)
            return
        except Exception:
            for name in set(sys.modules) - before:
                if name.startswith(f"{module.__name__}."):
                    del sys.modules[name]
        finally:
            if sys.modules.get(self._needless) is stand_in:
                del sys.modules[self._needless]
        self._own.exec_module(module)
