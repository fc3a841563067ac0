"""The phases of a search that runs a command, and the numbers of its checks."""

import threading

WHOLE, LAST, FIRST, RESULT = "whole", "outputs", "inputs", "result"
"""Phases of Polygraphy's searches, in order; the middle ones are its words."""


class Phases:
    """Names the phases of a search, and numbers its checks; from any thread.

    Both appear in replays, in names of artifacts and in the file with the number of a check. Questions before and after
    the search itself have phases of their own, and its artifacts stay where they are.

    Args:
        name: Name of the only phase, where a search has no others.
        apart: Whether the search has phases, those of Polygraphy.
    """

    def __init__(self, name: str = "", *, apart: bool = False) -> None:
        self.apart = apart
        self._name = WHOLE if apart else name
        self._count = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The phase."""
        return self._name

    @property
    def label(self) -> str:
        """The phase in the names of artifacts; empty where a search has no phases."""
        return self._name if self.apart else ""

    @property
    def sorts(self) -> bool:
        """Whether artifacts of checks are sorted now."""
        return not self.apart or self._name in (LAST, FIRST)

    def begin(self, name: str) -> None:
        """Begin a phase; nothing where a search has none."""
        if self.apart and name != self._name:
            with self._lock:
                self._name, self._count = name, 0

    def next_check(self) -> int:
        """Return the number of the next check, from 0; each number once in a phase."""
        with self._lock:
            self._count += 1
            return self._count - 1
