"""Modules that a forked process finds where it imports them, at no cost, and does not have before."""

import importlib.machinery
import sys

OURS = "tensortriage"


class StowedModules:
    """A finder of modules that have been imported already, and taken out of ``sys.modules`` again.

    Ours come back one by one, and are told to whoever listens to imports, as if they had been executed. Of others a
    package comes back whole: some look themselves up in ``sys.modules``.
    """

    def __init__(self, kept):
        self._stowed = {name: module for name, module in sys.modules.items() if name not in kept and _is_found(module)}
        for name in self._stowed:
            del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        """Return the specification of a module that is stowed; None for another."""
        if name not in self._stowed:
            return None
        package = name.partition(".")[0]
        if not package.startswith(OURS):
            for each in [each for each in self._stowed if each.partition(".")[0] == package and each != name]:
                sys.modules.setdefault(each, self._stowed.pop(each))
        module = self._stowed.pop(name)
        return importlib.machinery.ModuleSpec(
            name, _Again(module), origin=getattr(module, "__file__", None), is_package=hasattr(module, "__path__")
        )


class _Again:
    """Loads a module that is there."""

    def __init__(self, module):
        self._module, self._spec = module, module.__spec__
        self._path = getattr(module, "__path__", None)

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        module.__spec__ = self._spec
        if self._path is not None:
            module.__path__ = self._path
        if module.__name__.startswith(OURS):
            sys.audit("import", module.__name__, getattr(module, "__file__", None), None, None, None)


def _is_found(module):
    return getattr(module, "__spec__", None) is not None
