"""The smallest set of nodes to keep, chosen on the emulation: predict, gallop, prune.

Nodes are ranked once by their effect alone. Errors that add in power make the right set a prefix of the ranking, whose
length can be computed; where nodes interact it is longer than computed, and galloping finds a sufficient prefix. Such a
prefix holds innocent nodes, so blocks of it are dropped again from its least suspicious end, halving down to single
nodes: the result is 1-minimal, which without this last phase it is far from being.
"""

import math
from collections.abc import Callable, Collection, Generator, Sequence
from typing import TypeAlias, TypeVar

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.precision.goal import GoalReading
from tensortriage.precision.selection.influence import Influences
from tensortriage.search.answers.speculation import converse
from tensortriage.search.dialogue import Ask, Reply
from tensortriage.search.passes.bisection import Halving
from tensortriage.search.problem import CandidateOutcome, OracleVerdict

_NEEDED_BEYOND_DOUBT = 2.0
"""A node whose rounding alone exceeds the limit by this (6 dB) is needed; no reading is spent on doubting it."""

T = TypeVar("T")
READ = Callable[[frozenset[str]], GoalReading]
NodeSearch: TypeAlias = Generator[Ask[str], tuple[OracleVerdict, ...], T]
"""Tests which nodes are enough to keep, and returns its result: `tensortriage.search.dialogue`."""


@frozen_dataclass
class KeptNodes:
    """A set of nodes to keep.

    Attributes:
        kept: They, most influential first.
        reading: Reading of the outputs with it.
    """

    kept: tuple[str, ...]
    reading: GoalReading


def choose(influences: Influences, read: READ, *, strict: float = 1.0, limited: bool = True) -> KeptNodes | None:
    """Return the smallest set found that is good enough; None when even keeping everything is not.

    Args:
        influences: The effect of each node alone.
        read: Reading of a set of kept nodes.
        strict: Good enough is a ratio of 1 / this: above 1 for an engine that does worse than its emulation.
        limited: Whether ratios are relative to a limit; else only `GoalReading.within` counts.
    """

    def enough(kept: Collection[str]) -> bool:
        reading = read(frozenset(kept))
        return reading.within and (not limited or reading.ratio * strict <= 1.0)

    order = influences.order()
    length = _predicted_length(order, influences, 1.0 / strict) if limited else _endless(order, influences)
    if not enough(order[:length]):
        found = answered(galloped(order, start=max(1, 2 * length)), enough)
        if found is None:
            return None
        length = found
    kept = answered(prune(order[:length], needed=_needed(influences, strict, limited)), enough)
    return KeptNodes(tuple(kept), read(frozenset(kept)))


def prune(kept: Sequence[str], *, needed: Callable[[str], bool] = lambda node: False) -> NodeSearch[list[str]]:
    """Drop unneeded nodes, from the end, in blocks that halve from half of them down to single nodes.

    Args:
        kept: Nodes, the least suspicious last.
        needed: Nodes known to be needed; they are not tried.
    """
    left = list(kept)
    block = max(1, len(left) // 2)
    while left:
        end = len(left)
        while end > 0:
            chunk = [node for node in left[max(0, end - block) : end] if not needed(node)]
            rest = [node for node in left if node not in chunk]
            if chunk and (yield from _enough(rest)):
                left = rest
            end = min(end - block, len(left))
        if block == 1:
            return left
        block = max(1, block // 2)
    return left


def _predicted_length(order: Sequence[str], influences: Influences, limit: float) -> int:
    """Return the length of the shortest prefix without which the ratio to expect is within the limit."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        if influences.predicted(order[middle:]) <= limit:
            high = middle
        else:
            low = middle + 1
    return low


def _endless(order: Sequence[str], influences: Influences) -> int:
    """Return how many nodes make NaN or Inf."""
    return sum(math.isinf(influences.ratio(node)) for node in order)


def _needed(influences: Influences, strict: float, limited: bool) -> Callable[[str], bool]:
    if not limited:
        return lambda node: False
    return lambda node: node in influences.alone and influences.ratio(node) * strict > _NEEDED_BEYOND_DOUBT


def galloped(order: Sequence[str], *, start: int = 1) -> NodeSearch[int | None]:
    """Find the length of the shortest prefix that is enough, by doubling and halving; None if none is.

    Args:
        order: Nodes, the most suspicious first.
        start: Length of the first prefix tried.
    """
    low, length = 0, max(1, min(start, len(order)))
    while not (yield from _enough(order[:length])):
        if length == len(order):
            return None
        low, length = length, min(len(order), 2 * length)
    return (yield from _halved(order, low, length))


def smallest(order: Sequence[str], /) -> NodeSearch[list[str]]:
    """Find a minimal sufficient set of nodes, when all are known to be enough.

    Args:
        order: Nodes, the most suspicious first.
    """
    length = yield from galloped(order)
    return (yield from prune(order[: length or len(order)]))


def bisected(items: Sequence[str], /) -> NodeSearch[list[str]]:
    """Find the shortest prefix that is enough, by halving, as Polygraphy does.

    Sensitive nodes are seldom neighbours, so this keeps everything before the last of them. All items are known to be
    enough, and none not to be.
    """
    length = yield from _halved(items, 0, len(items))
    return list(items[:length])


def linear(items: Sequence[str], /) -> NodeSearch[list[str]]:
    """Find the shortest prefix that is enough, one more at a time; see `bisected`."""
    for count in range(1, len(items)):
        if (yield from _enough(items[:count])):
            return list(items[:count])
    return list(items)


def answered(search: NodeSearch[T], enough: Callable[[frozenset[str]], bool]) -> T:
    """Return the result of a search, its questions answered one after the other."""
    return converse(search, lambda ask, ahead: tuple(map(answer, map(enough, ask.candidates))))


def answer(enough: bool) -> OracleVerdict:
    """Return the answer to a search about a set of nodes; it looks for sets that are enough."""
    return OracleVerdict(CandidateOutcome.SAME if enough else CandidateOutcome.PASS)


def _enough(kept: Sequence[str]) -> Reply[str]:
    (verdict,) = yield Ask((frozenset(kept),))
    return verdict.same


def _halved(order: Sequence[str], low: int, high: int) -> NodeSearch[int]:
    length = Halving(low, high)
    while (middle := length.middle) is not None:
        length.answered(middle, enough=(yield from _enough(order[:middle])))
    return length.high
