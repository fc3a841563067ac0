"""Passes that prove something: without this item, or this block, it no longer fails.

All parts are asked about against the same base, so their checks may run side by side; what can be removed singly is
then removed together, or as much of it as can be.
"""

import math
from collections.abc import Sequence

from tensortriage.search.dialogue import Ask, Care, Dialogue, Minimality, Reply, SearchState
from tensortriage.search.passes.deletion import blocks
from tensortriage.search.problem import T

FEW = 16
"""Up to so many items, asking about each is not dear."""


def one_minimal(state: SearchState[T]) -> Dialogue[T]:
    """Remove single items until none can be removed."""
    yield from _settle(state, 1)
    state.minimality = Minimality.ONE_MINIMAL


def block_minimal(state: SearchState[T]) -> Dialogue[T]:
    """Remove blocks until none can be removed, for faults that need many items.

    A block holds about the square root of their number; of a few items each is a block.
    """
    few = len(state.current) <= FEW
    size = 1 if few else round(math.sqrt(len(state.current)))
    yield from _settle(state, size)
    state.minimality = Minimality.ONE_MINIMAL if size == 1 else Minimality.BLOCK_MINIMAL
    state.block_items = size


def _settle(state: SearchState[T], size: int) -> Dialogue[T]:
    """Remove blocks until no single one can be removed from what is then left; sure answers, being dear, come last."""
    while True:
        while (yield from _round(state, size, Care.QUICK)):
            pass
        yield Ask((state.current,), Care.MEASURE)
        if not (yield from _round(state, size, Care.SURE)):
            return


def _round(state: SearchState[T], size: int, care: Care) -> Reply[T]:
    """Ask about removing every block, remove what can be, and say whether there was any."""
    base = state.current
    parts = [frozenset(block) for block in blocks(state.problem, state.problem.ordered(base), size)]
    if len(parts) < 2:
        return False
    state.checks_left = float(len(parts))
    verdicts = yield Ask(tuple(base.difference(part) for part in parts), care)
    removable = [part for part, verdict in zip(parts, verdicts, strict=True) if verdict.same]
    if removable:
        yield from _remove(state, removable)
    return bool(removable)


def _remove(state: SearchState[T], parts: Sequence[frozenset[T]]) -> Dialogue[T]:
    """Remove parts together that can be removed one by one; when they cannot, as many of the first as can be."""
    base = state.current
    state.adopt(base.difference(parts[0]))
    everything = base.difference(*parts)
    if len(parts) == 1 or (everything and (yield from state.shrinks_to(everything))):
        return
    enough, many = 1, len(parts)  # the first `enough` can be removed together; the first `many` probably not
    while many - enough > 1:
        middle = (enough + many) // 2
        if (yield from state.shrinks_to(base.difference(*parts[:middle]))):
            enough = middle
        else:
            many = middle
