"""Answers that can be taken back, last one first: people make mistakes."""

from typing import TypeVar

from tensortriage.search.answers.answer_cache import Cache

Kind = TypeVar("Kind")


class Revisable:
    """A cache whose last answers can be taken back.

    Args:
        cache: The store of answers.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._given: list[str] = []
        self._retracted: set[str] = set()

    def get(self, key: str, kind: type[Kind], /) -> Kind | None:
        """Return the stored answer; None when there is none, or it was taken back."""
        return None if key in self._retracted else self._cache.get(key, kind)

    def put(self, key: str, question: str, answer: object, /, *, seconds: float) -> None:
        """Store an answer."""
        self._cache.put(key, question, answer, seconds=seconds)
        self._given.append(key)
        self._retracted.discard(key)

    def undo(self) -> None:
        """Take the last answer back; without one nothing happens."""
        if self._given:
            self._retracted.add(self._given.pop())
