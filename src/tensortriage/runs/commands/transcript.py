"""The output of a command in bounded memory: the beginning, the end, and which patterns occurred anywhere in between.

A check may print 100 MB, or never stop. Nobody reads that, but a pattern that decides between pass and fail may be
anywhere in it; so patterns are looked for while the text goes by, in windows that overlap.
"""

import codecs
import re
from collections.abc import Sequence

from tensortriage.frozen_dataclass import frozen_dataclass

HEAD_CHARACTERS = 32_000
TAIL_CHARACTERS = 96_000
OVERLAP_CHARACTERS = 64_000
"""Longest match that is found wherever it lies."""

LAST_WORDS_CHARACTERS = 300


@frozen_dataclass
class Printed:
    """The output of a command, stdout and stderr in the order of arrival.

    Attributes:
        head: The beginning; all of it when ``tail`` is empty.
        tail: The end.
        nbytes: Length of everything.
        matched: The patterns that occurred anywhere, in the order they were given.
    """

    head: str = ""
    tail: str = ""
    nbytes: int = 0
    matched: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Beginning and end, with a note on the omitted middle."""
        if not self.tail:
            return self.head
        return f"{self.head}\n[... {self.nbytes:,} bytes in all, the middle is omitted ...]\n{self.tail}"

    def last_words(self) -> str:
        """Return the last non-empty line, shortened, for an error message."""
        lines = [line.strip() for line in (self.tail or self.head).splitlines() if line.strip()]
        return lines[-1][-LAST_WORDS_CHARACTERS:] if lines else ""


class Transcript:
    """Takes output as it comes.

    Args:
        patterns: Regular expressions to look for, in Python's syntax.
    """

    def __init__(self, patterns: Sequence[re.Pattern[str]] = ()) -> None:
        self._missing = list(patterns)
        self._patterns = tuple(patterns)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._window = ""
        self._first = True
        self._head = ""
        self._tail = ""
        self._nbytes = 0

    def take(self, chunk: bytes, *, final: bool = False) -> None:
        """Take the next piece of output."""
        self._nbytes += len(chunk)
        text = self._decoder.decode(chunk, final)
        room = HEAD_CHARACTERS + TAIL_CHARACTERS - len(self._head)
        self._head += text[: max(0, room)]
        self._tail = (self._tail + text[max(0, room) :])[-TAIL_CHARACTERS:]
        if self._missing:
            self._search(text)

    def finish(self) -> Printed:
        """Return the printed output."""
        self.take(b"", final=True)
        matched = tuple(pattern.pattern for pattern in self._patterns if pattern not in self._missing)
        if not self._tail:
            return Printed(self._head, "", self._nbytes, matched)
        tail = (self._head + self._tail)[-TAIL_CHARACTERS:]
        return Printed(self._head[:HEAD_CHARACTERS], tail, self._nbytes, matched)

    def _search(self, text: str) -> None:
        window = self._window + text
        # From the second window on its first character is skipped, so that ^ is true at the very beginning only.
        start = 0 if self._first else 1
        self._missing = [pattern for pattern in self._missing if not pattern.search(window, start)]
        if len(window) > OVERLAP_CHARACTERS:
            window, self._first = window[-OVERLAP_CHARACTERS:], False
        self._window = window
