"""What will a search for nodes ask next? Replay it with the answers so far, and with each answer that may come.

Searches here are functions of the answers, so a replay with guessed ones asks exactly what the search would ask; idle
workers may fetch those answers meanwhile, without any influence on the result.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

Enough: TypeAlias = Callable[[Sequence[str]], bool]


class _UnknownError(Exception):
    """The replay has come to a question without an answer."""

    def __init__(self, kept: tuple[str, ...]) -> None:
        super().__init__()
        self.kept = kept


def questions_ahead(
    find: Callable[[Enough], object], known: Mapping[frozenset[str], bool], most: int
) -> list[tuple[str, ...]]:
    """Return what a search asks next and may ask after that, the next first; each set of nodes once.

    Args:
        find: The search, given who answers; it is run from its beginning.
        known: Answers so far, by the nodes that are kept.
        most: Most questions.
    """
    found: dict[frozenset[str], tuple[str, ...]] = {}
    guesses: collections.deque[dict[frozenset[str], bool]] = collections.deque([{}])
    looked = 0
    while guesses and len(found) < most and looked < 4 * most:
        looked += 1
        guess = guesses.popleft()
        question = _next(find, {**known, **guess})
        if question is not None:
            key = frozenset(question)
            found.setdefault(key, question)
            guesses += [{**guess, key: False}, {**guess, key: True}]
    return list(found.values())


def _next(find: Callable[[Enough], object], answers: Mapping[frozenset[str], bool]) -> tuple[str, ...] | None:
    """Return the first question without an answer; None when the search ends without one."""

    def enough(kept: Sequence[str]) -> bool:
        key = frozenset(kept)
        if key not in answers:
            raise _UnknownError(tuple(kept))
        return answers[key]

    try:
        find(enough)
    except _UnknownError as unknown:
        return unknown.kept
    return None
