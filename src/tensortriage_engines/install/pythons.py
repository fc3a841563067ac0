"""The Python that packages are installed into: this one, or one on the PATH, of pyenv or of uv that has wheels.

Wheels are for some Pythons only. When pip has found none of a release for the first Python, the package index is
queried for the Pythons that it has wheels for.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tensortriage.sdk import EngineMissing
from tensortriage_engines.install.recipes import Pythons, in_order
from tensortriage_engines.install.virtual_environment import call, failed

KNOWN_MINORS = range(8, 15)
"""The Pythons that are searched and tried: from the worker's oldest to the newest release."""
_NO_WHEEL = re.compile(r"No matching distribution found for ([\w.-]+)(?:\[[\w,]*\])?==([\w.+!-]+)")
_VERSIONS = re.compile(r"Available versions: (.*)")


def interpreter(pythons: Pythons, minors: Sequence[int] = tuple(KNOWN_MINORS)) -> str:
    """Return a Python that packages take: this one, or the newest that is found and starts; empty for none.

    Args:
        pythons: The oldest and the newest that they take.
        minors: Minor versions of Python 3 that count.
    """
    oldest, newest = pythons
    here = sys.version_info[:2]
    if oldest <= here <= newest and here[1] in {*minors, *range(KNOWN_MINORS.stop, here[1] + 1)}:
        return sys.executable
    for minor in sorted(minors, reverse=True):
        for found in _found(minor) if oldest <= (3, minor) <= newest else ():
            if not subprocess.run([found, "-I", "-c", "import venv"], capture_output=True, check=False).returncode:
                return found
    return ""


def _found(minor: int) -> Iterator[str]:
    """Yield the programs that may be a Python 3: on the PATH, then where pyenv and uv keep theirs, newest first."""
    if found := shutil.which(f"python3.{minor}"):
        yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")) / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or os.path.expanduser("~/.local/share/uv/python"))
    for folder, names in ((pyenv, f"3.{minor}.*"), (uv, f"cpython-3.{minor}.*")):
        kept = folder.glob(f"{names}/bin/python3.{minor}") if folder.is_absolute() else ()
        yield from sorted(map(str, kept), key=in_order, reverse=True)


def needed(what: str, pythons: Pythons, minors: Sequence[int] = tuple(KNOWN_MINORS)) -> EngineMissing:
    """Return the error for packages that no Python here takes.

    Args:
        what: Package and version, for the message.
        pythons: As for `interpreter`.
        minors: Likewise.
    """
    suitable = [minor for minor in minors if pythons[0] <= (3, minor) <= pythons[1]]
    span = f"3.{suitable[0]} to 3.{suitable[-1]}" if len(suitable) > 1 else f"3.{suitable[0]}"
    here = ".".join(map(str, sys.version_info[:2]))
    return failed(
        f"{what} takes Python {span}: this is {here}, and none is on the PATH or installed by pyenv or uv",
        cure=f"put python3.{suitable[-1]} on the PATH",
    )


def lacking(said: str) -> tuple[str, str]:
    """Return package and version that pip found no wheel of; empty where it failed for another reason."""
    found = _NO_WHEEL.search(said)
    return (found[1], found[2]) if found else ("", "")


def minors_with(python: str, package: str, version: str) -> list[int]:
    """Return the minor versions of Python 3 that the package index has wheels of a release for.

    Args:
        python: One with pip.
        package: Name of the package.
        version: The release.
    """
    return [minor for minor in KNOWN_MINORS if version in _listed(python, package, minor)]


def _listed(python: str, package: str, minor: int) -> list[str]:
    """Return the releases of a package that have wheels for a Python."""
    words = [python, "-I", "-m", "pip", "index", "versions", "--only-binary=:all:", package]
    try:
        listing = call([*words, "--python-version", f"3.{minor}"], "pip")
    except EngineMissing:  # it lists none
        return []
    found = _VERSIONS.search(listing)
    return found[1].split(", ") if found else []
