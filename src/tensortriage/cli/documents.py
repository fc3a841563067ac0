"""Documents on standard output: UTF-8 in any locale, because a file format has one encoding.

Standard output takes one whole document: once begun it cannot be interrupted, and no error adds another.
"""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tensortriage.cli import guard

if TYPE_CHECKING:
    from tensortriage.report.terminal.lines import Line

_begun: list[str] = []


def print_document(text: str, *, err: bool = False) -> None:
    """Write a document; lone surrogates, which UTF-8 cannot hold, as escapes (in JSON the same string).

    Args:
        text: The document.
        err: Write to stderr.
    """
    data = (text.removesuffix("\n") + "\n").encode("utf-8", errors="backslashreplace")
    stream = sys.stderr if err else sys.stdout
    if not err:
        begin()
    stream.flush()
    rest = memoryview(data)
    while rest:  # without a buffer (PYTHONUNBUFFERED) a write that a signal disturbs is a part of one
        rest = rest[stream.buffer.write(rest) :]
    stream.flush()


def answer(found: object, lines: "Iterable[Line]", *, as_json: bool) -> None:
    """Show a result: as one document, or as lines for people."""
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(found))
    else:
        from tensortriage.report.terminal.lines import show

        show(lines)


def begin() -> None:
    """Note that standard output has a document from now on."""
    _begun.append("document")
    guard.about_to(guard.ANSWERING)


def begun() -> bool:
    """Whether standard output has a document, or a part of one."""
    return bool(_begun)


def forget() -> None:
    """Begin another command in this process: its standard output is empty."""
    _begun.clear()
