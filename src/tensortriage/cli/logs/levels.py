"""Polygraphy's names of logging levels, and the steps between them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import click

LEVELS = {
    "CRITICAL": 50, "ERROR": 40, "WARNING": 30, "FINISH": 28, "START": 22, "INFO": 20, "VERBOSE": 10,
    "EXTRA_VERBOSE": 7, "SUPER_VERBOSE": 4, "ULTRA_VERBOSE": 1,
}  # fmt: skip
"""Polygraphy's names of levels, as numbers of `logging`; from SUPER_VERBOSE on the libraries used are heard too."""
_STEPS = tuple(sorted(level for name, level in LEVELS.items() if name not in ("START", "FINISH")))


class LogValues(TypedDict):
    """The logging options of a command line, as far as it is read."""

    more: int
    less: int
    named: tuple[str, ...]
    silent: bool
    formats: tuple[str, ...]
    plain: bool
    file: Path | None


def levels_of(words: Sequence[str]) -> tuple[int | None, dict[str, int]]:
    """Return the level of everything (None: not said), and those of parts by module (``runs.runner``).

    Raises:
        click.BadParameter: For a word that names no level.
    """
    whole, parts = None, {}
    for word in words:
        path, _, name = word.rpartition(":")
        if name.upper() not in LEVELS:
            raise click.BadParameter(f"'{word}' names no level; levels: {', '.join(LEVELS)}", param_hint="--verbosity")
        if path:
            parts[".".join(Path(path).with_suffix("").parts)] = LEVELS[name.upper()]
        else:
            whole = LEVELS[name.upper()]
    return whole, parts


def moved(level: int, steps: int, *, every: bool = False) -> int:
    """Return the named level that lies some steps above (below: negative) another.

    Args:
        level: A named level.
        steps: How far, and in which direction.
        every: Whether START and FINISH are steps too, as with Polygraphy.
    """
    named = sorted(LEVELS.values()) if every else _STEPS
    return named[min(max(named.index(level) + steps, 0), len(named) - 1)]
