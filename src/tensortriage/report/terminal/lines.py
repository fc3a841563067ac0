"""Lines of a terminal: coloured where it shows colours, plain text elsewhere, as long as they are.

A line is text, or a sequence of spans, each a text and a style of Rich's words: ``bold``, ``dim`` and a colour.
Whatever is shown passes through `printable` here.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import starmap
from typing import Any

import click

from tensortriage.values.printable import printable

Line = str | Sequence[tuple[str, str]]

PLAIN_WIDTH = 140
"""Columns of tables where there is no terminal to ask and ``COLUMNS`` is not set."""


def plain(line: Line) -> str:
    """Return a line without its styles."""
    return printable(line if isinstance(line, str) else "".join(text for text, _ in line))


def show(lines: Iterable[Line], *, err: bool = False) -> None:
    """Print lines, on stderr on request, in the encoding of the stream."""
    stream = sys.stderr if err else sys.stdout
    for line in lines:
        click.echo(plain(line) if isinstance(line, str) else "".join(starmap(_styled, line)), stream)


def width() -> int:
    """Return how wide a table on standard output may be."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else PLAIN_WIDTH


def _styled(text: str, style: str) -> str:
    words = style.split()
    effects: dict[str, Any] = {word: True for word in words if word in ("bold", "dim")}
    colour = next((word for word in words if word not in effects), None)
    return click.style(printable(text), fg=colour, **effects) if words else printable(text)
