"""Passes that go through the items block by block and remove the unneeded ones.

Some shrink and prove nothing; others prove that without this item, or this block, it no longer fails. These test all
parts against the same base, so that checks may run side by side; parts that can be removed singly are then removed
together, or as many of them as can be.
"""

import math
from collections.abc import Iterator, Sequence

from tensortriage.search.dialogue import Ask, Care, Dialogue, Minimality, Reply, SearchState
from tensortriage.search.passes.bisection import Halving
from tensortriage.search.problem import SearchProblem, T


def sweep(state: SearchState[T]) -> Dialogue[T]:
    """Go once through the items that nothing is known of, when `narrow` left them because many may be needed.

    Takes as many at once as are free of needed ones with a chance of one half, by the share of needed ones so far, and
    halves those that are not: Hwang's group testing (J. Am. Stat. Assoc. 67:605, 1972) with an estimated share.
    """
    rest = [item for item in state.problem.ordered(state.current) if item not in state.believed]
    seen = needed = tainted = 0  # the last `tainted` items of the rest hold a needed one
    while rest:
        state.checks_left = float(len(state.current))
        free = round(-1.0 / math.log2(1.0 - (needed + 1.0) / (seen + 2.0)))
        size = max(1, tainted // 2 if tainted else min(free, len(rest)))
        left = state.current.difference(rest[-size:])
        if tainted != 1 and left and (yield from state.shrinks_to(left)):
            del rest[-size:]
            seen += size
            tainted = max(0, tainted - size)
        elif size > 1:
            tainted = size
        else:
            state.believed.append(rest.pop())
            seen, needed, tainted = seen + 1, needed + 1, 0


def blocks(problem: SearchProblem[T], items: Sequence[T], size: int) -> Iterator[tuple[T, ...]]:
    """Cut a sequence into blocks of at most the weight of ``size`` average items; a heavier item is its own block.

    Blocks of size 1 are single items, whatever they weigh.
    """
    if size == 1:
        yield from ((item,) for item in items)
        return
    limit = size * math.fsum(problem.weight(item) for item in items) / len(items)
    block: list[T] = []
    weight = 0.0
    for item in items:
        if block and weight + problem.weight(item) > limit * (1.0 + 1e-9):
            yield tuple(block)
            block, weight = [], 0.0
        block.append(item)
        weight += problem.weight(item)
    if block:
        yield tuple(block)


FEW = 16
"""Up to so many items, asking about each is cheap."""


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
    """Remove blocks until no single one can be removed; confirmed answers are expensive, so they come last."""
    while True:
        while (yield from _round(state, size, Care.QUICK)):
            pass
        yield Ask((state.current,), Care.MEASURE)
        if not (yield from _round(state, size, Care.SURE)):
            return


def _round(state: SearchState[T], size: int, care: Care) -> Reply[T]:
    """Try to remove every block; return whether one was removed."""
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
    too_many = Halving(1, len(parts))  # the first one can be removed; all together probably not
    while (middle := too_many.middle) is not None:
        removed = yield from state.shrinks_to(base.difference(*parts[:middle]))
        too_many.answered(middle, enough=not removed)
