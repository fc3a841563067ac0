"""Entry points, by which packages add engines and commands: read from the folders of installed distributions.

`importlib.metadata` would find the same, and takes longer to import than ``triage --help`` takes altogether.
"""

import importlib
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

OWN = "tensortriage"
"""The distribution of this package and of the packages next to it."""
_ENDINGS = (".dist-info", ".egg-info")


class EntryPoint(NamedTuple):
    """An object that a distribution registers; no dataclass, which would take longer to import than all else here.

    Attributes:
        name: Name in its entry-point group.
        value: Place of the object, ``module:attribute``.
        distribution: Name of the distribution, in small letters.
    """

    name: str
    value: str
    distribution: str

    def load(self) -> Any:
        """Import and return the object; exceptions of the import pass through."""
        module, _, attributes = self.value.partition(":")
        found = importlib.import_module(module)
        for attribute in filter(None, attributes.split(".")):
            found = getattr(found, attribute)
        return found

    def summary(self) -> str:
        """Return the first line of a function's documentation, out of its source: nothing is imported."""
        module, _, attribute = self.value.partition(":")
        head = rf"^def {re.escape(attribute)}\((?:(?!^(?:def|class|@)).)*?:(?:  #[^\n]*)?\n\s+"
        summary = re.compile(rf'{head}"""(.+?)\s*(?:\n|""")', re.MULTILINE | re.DOTALL)
        for folder in filter(None, sys.path):
            for file in (f"{module.replace('.', '/')}.py", f"{module.replace('.', '/')}/__init__.py"):
                if (text := _read(folder, file)) is not None:
                    found = summary.search(text)
                    return found[1] if found else f"From the package {self.distribution}."
        return f"From the package {self.distribution}."


def registered(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, in order of names; of one name our own, else the first found."""
    found: dict[str, EntryPoint] = {}
    for name, value, distribution in _registered(group):
        if name not in found or distribution == OWN:
            found[name] = EntryPoint(name, value, distribution)
    return dict(sorted(found.items()))


def _registered(group: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and distribution of each entry; of a distribution that is there twice, of the first."""
    seen = set()
    for folder in sys.path:
        try:
            names = sorted(name for name in os.listdir(folder or ".") if name.endswith(_ENDINGS))
        except OSError:  # an archive, or nothing at all
            continue
        for name in names:
            distribution = re.sub(r"[-_.]+", "-", name.rpartition(".")[0].partition("-")[0]).lower()
            if distribution in seen:
                continue
            seen.add(distribution)
            text = _read(folder, name, "entry_points.txt")
            if text is not None and f"[{group}]" in text:
                yield from ((*entry, distribution) for entry in _entries(text, group))


def _read(*parts: str) -> str | None:
    """Return the text of a file; None where it cannot be read."""
    try:
        with open(os.path.join(*parts), encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def _entries(text: str, group: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each entry of a group; of the value the extras are left out."""
    within = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            within = line == f"[{group}]"
        elif within and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.partition("[")[0].replace(" ", "")
