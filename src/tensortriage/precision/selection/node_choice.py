"""The smallest set of nodes to keep, chosen on the emulation: predict, gallop, prune.

Nodes are ranked once by what they do alone. Errors that add in power make the right set a prefix of the ranking, whose
length can be computed; where nodes interact it is longer than computed, and galloping finds a prefix that is enough.
Such a prefix holds nodes that are innocent, so blocks of it are dropped again from its least suspicious end, halving
down to single nodes: the result is 1-minimal, which without this last phase it is far from being.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

from tensortriage.precision.goal import GoalReading
from tensortriage.precision.selection.influence import Influences

READ = Callable[[frozenset[str]], GoalReading]
DOUBT = 2.0
"""A node whose rounding alone exceeds the limit by this (6 dB) is needed; no reading is spent on doubting it."""


@dataclasses.dataclass(frozen=True, slots=True)
class KeptNodes:
    """A set of nodes to keep.

    Attributes:
        kept: They, most influential first.
        reading: What the outputs are like then.
    """

    kept: tuple[str, ...]
    reading: GoalReading


def choose(influences: Influences, read: READ, *, strict: float = 1.0, limited: bool = True) -> KeptNodes | None:
    """Return the smallest set found that is good enough; None when even keeping everything is not.

    Args:
        influences: What nodes do alone.
        read: Reading of a set of kept nodes.
        strict: Good enough is a ratio of 1 / this: above 1 for an engine that does worse than its emulation.
        limited: Whether ratios are relative to a limit; else only `GoalReading.within` counts.
    """

    def enough(reading: GoalReading) -> bool:
        return reading.within and (not limited or reading.ratio * strict <= 1.0)

    order = influences.order()
    length = _predicted_length(order, influences, 1.0 / strict) if limited else _endless(order, influences)
    if not enough(read(frozenset(order[:length]))):
        found = galloped(order, lambda prefix: enough(read(frozenset(prefix))), start=max(1, 2 * length))
        if found is None:
            return None
        length = found
    kept = prune(
        order[:length], lambda tried: enough(read(frozenset(tried))), needed=_needed(influences, strict, limited)
    )
    return KeptNodes(tuple(kept), read(frozenset(kept)))


def prune(
    kept: Sequence[str],
    enough: Callable[[Sequence[str]], bool],
    *,
    needed: Callable[[str], bool] = lambda node: False,
) -> list[str]:
    """Drop what is not needed, from the end, in blocks that halve from half of them down to single nodes.

    Args:
        kept: Nodes, the least suspicious last.
        enough: Whether a subset will do.
        needed: Nodes known to be needed; they are not tried.
    """
    left = list(kept)
    block = max(1, len(left) // 2)
    while left:
        end = len(left)
        while end > 0:
            chunk = [node for node in left[max(0, end - block) : end] if not needed(node)]
            rest = [node for node in left if node not in chunk]
            if chunk and enough(rest):
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
    return lambda node: node in influences.alone and influences.ratio(node) * strict > DOUBT


def galloped(order: Sequence[str], enough: Callable[[Sequence[str]], bool], *, start: int = 1) -> int | None:
    """Return the length of the shortest prefix that is enough, as far as doubling and halving tells; None if none is.

    Args:
        order: Nodes, the most suspicious first.
        enough: Whether a prefix will do.
        start: Length of the first prefix tried.
    """
    low, length = 0, max(1, min(start, len(order)))
    while not enough(order[:length]):
        if length == len(order):
            return None
        low, length = length, min(len(order), 2 * length)
    while length - low > 1:
        middle = (low + length) // 2
        if enough(order[:middle]):
            length = middle
        else:
            low = middle
    return length
