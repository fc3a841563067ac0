"""Passes that go through the items block by block and remove what can be removed; they shrink, and prove nothing."""

import math
from collections.abc import Iterator, Sequence

from tensortriage.search.dialogue import Dialogue, SearchState
from tensortriage.search.problem import SearchProblem, T

FIRST_DELETION = 2.0
"""Delta debugging starts from a chance of 2 / N that an item is needed, that is with blocks of about N / 2."""
GROWTH = 1.0 / (1.0 - 1.0 / math.e)
"""Factor by which that chance grows with every round of the counter form (arXiv:2408.04735)."""


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


def delta_debug(state: SearchState[T]) -> Dialogue[T]:
    """Remove blocks, one attempt each, in sizes that shrink from half of all to one.

    The counter form of probabilistic delta debugging with blocks of equal weight (arXiv:2411.19410). Needs no
    ranking and no luck with it; `narrow` needs fewer checks where few items are needed.
    """
    chance = min(0.5, FIRST_DELETION / len(state.current))
    while True:
        size = max(1, round(-1.0 / math.log1p(-chance))) if chance < 1.0 else 1
        for block in blocks(state.problem, state.problem.ordered(state.current), size):
            rest = state.current.difference(block)
            if rest:
                yield from state.shrinks_to(rest)
        if size == 1:
            return
        chance = min(1.0, chance * GROWTH)


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
