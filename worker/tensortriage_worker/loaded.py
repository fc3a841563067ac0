"""Files of code that an engine's process has loaded: Python files that it executes, and libraries that it maps.

Each is written to a file of the worker's folder before it does anything, so that a crash does not hide its culprit. The
standard library and installed packages are left out, whose versions are known otherwise, and so are files that this
program or the engine itself puts into the worker's folder.
"""

from __future__ import annotations

import json
import os
import site
import sys
import sysconfig
from typing import Any, Tuple

CODE_LOG = "loaded-code"
"""Its name; a line is a JSON list: path, bytes (-1 for a file that has been replaced), nanoseconds of change."""
_DELETED = " (deleted)"


class LoadedCode:
    """Watches this process from now on.

    Args:
        home: The worker's folder.
    """

    def __init__(self, home: str) -> None:
        self._file = open(os.path.join(home, CODE_LOG), "a", buffering=1, encoding="utf-8")  # noqa: SIM115 - to the end
        self._seen = set()  # type: set[str]
        self._apart = tuple(os.path.join(os.path.realpath(place), "") for place in (home, *_package_folders()))
        for module in list(sys.modules.values()):
            self._saw(getattr(module, "__file__", None))
        sys.addaudithook(self._hook)

    def look(self) -> None:
        """Write the libraries that are mapped by now, those included that others bring along."""
        try:
            with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
                rows = [line.rstrip("\n").split(None, 5) for line in maps]
        except OSError:  # not Linux; modules loaded by Python are known all the same
            return
        for row in rows:
            if len(row) > 5 and "x" in row[1]:
                path, gone = row[5], row[5].endswith(_DELETED)
                self._saw(path[: -len(_DELETED)] if gone else path, replaced=gone)

    def _hook(self, event: str, arguments: Tuple[Any, ...]) -> None:
        if event == "exec":
            self._saw(getattr(arguments[0], "co_filename", None))
        elif event == "import":  # a compiled module has a file by now, others have none
            self._saw(arguments[1])
        elif event == "ctypes.dlopen":
            self._saw(arguments[0])

    def _saw(self, name: Any, *, replaced: bool = False) -> None:
        """Write a file's path unless that is done; errors must not reach the engine."""
        if not isinstance(name, str) or name in self._seen:
            return
        self._seen.add(name)
        try:
            path = os.path.abspath(name)
            while not os.path.exists(path) and os.path.dirname(path) != path:
                path = os.path.dirname(path)  # a module of an archive
            if not os.path.isfile(path) or os.path.realpath(path).startswith(self._apart):
                return
            facts = os.stat(path)
            self._file.write(json.dumps([path, -1 if replaced else facts.st_size, facts.st_mtime_ns]) + "\n")
        except (OSError, ValueError):
            pass


def _package_folders() -> Tuple[str, ...]:
    paths = sysconfig.get_paths()
    known = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return (*known, *site.getsitepackages(), site.getusersitepackages())
