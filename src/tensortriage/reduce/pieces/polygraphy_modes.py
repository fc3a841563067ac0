"""The two searches that Polygraphy has: the shortest failing piece that ends in one node, then one that starts there.

They are offered for comparison and for habit. They cannot find needed nodes in different branches, or far apart on one
path with unneeded ones between, because every piece they look at is everything before a node, or everything behind it.
They follow Polygraphy's order and count as it does: from 0 for the last node, and again for the first one. Unlike
there, bisection tests the first node too instead of assuming that it is good.
"""

from collections.abc import Callable, Sequence

from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.request import Ends, ReduceMode
from tensortriage.runs.commands.phases import FIRST, LAST, Phases
from tensortriage.search.dialogue import Ask, Dialogue, Pass, Reply, SearchState
from tensortriage.search.driver import TO_BLOCKS, TO_ITEMS

Candidates = Sequence[frozenset[str]]
"""Pieces, one for each node that they end in or start at."""
Visit = Callable[[SearchState[str], Candidates, Phases, str], Dialogue[str]]


def passes_of(mode: ReduceMode, pieces: Pieces, ends: Ends, phases: Phases) -> tuple[Pass[str], ...]:
    """Return the passes of a mode."""
    if mode is ReduceMode.BISECT:
        return (bisect(pieces, ends, phases),)
    if mode is ReduceMode.LINEAR:
        return (linear(pieces, ends, phases),)
    return TO_BLOCKS if mode is ReduceMode.BLOCKS else TO_ITEMS


def bisect(pieces: Pieces, ends: Ends, phases: Phases) -> Pass[str]:
    """Return the pass that halves the position of the last node, then of the first: about 2 log2 N checks."""
    return _phases(pieces, ends, phases, _bisect)


def linear(pieces: Pieces, ends: Ends, phases: Phases) -> Pass[str]:
    """Return the pass that tries every node as the last, then every one as the first: N + M checks."""
    return _phases(pieces, ends, phases, _linear)


def _phases(pieces: Pieces, ends: Ends, phases: Phases, visit: Visit) -> Pass[str]:
    def run(state: SearchState[str]) -> Dialogue[str]:
        phases.begin(LAST)
        if ends is not Ends.KEEP_OUTPUTS:
            yield from visit(state, [pieces.leading_to(item) for item in pieces.items], phases, LAST)
        if ends is not Ends.KEEP_INPUTS:
            phases.begin(FIRST)
            left = [item for item in pieces.items if item in state.current]
            yield from visit(state, [pieces.starting_at(item, state.current) for item in left], phases, FIRST)

    return run


def _bisect(state: SearchState[str], candidates: Candidates, phases: Phases, end: str) -> Dialogue[str]:
    """Halve the distance between a passing and a failing place, rounding away from the last one tried."""
    good, bad = (0, len(candidates)) if end == LAST else (len(candidates), 0)
    place = len(candidates) // 2
    while abs(good - bad) > 1:
        state.checks_left = float(abs(good - bad).bit_length())
        failed = yield from _ask(state, candidates[place], phases)
        good, bad = (good, place) if failed else (place, bad)
        place = (good + bad) // 2 if failed else -(-(good + bad) // 2)
    if end == LAST and bad == 1:  # nobody has asked about the first node
        yield from _ask(state, candidates[0], phases)


def _linear(state: SearchState[str], candidates: Candidates, phases: Phases, end: str) -> Dialogue[str]:
    for number, candidate in enumerate(reversed(candidates) if end == LAST else candidates):
        state.checks_left = float(len(candidates) - number)
        yield from _ask(state, candidate, phases)


def _ask(state: SearchState[str], candidate: frozenset[str], phases: Phases) -> Reply[str]:
    """Ask about a candidate, keep it when it is the smallest so far, and return whether it fails the same way.

    The candidate that is known to fail is not tested again; it has a number as there.
    """
    if candidate == state.current:
        phases.next_check()
        return True
    (verdict,) = yield Ask((candidate,))
    if verdict.same and len(candidate) <= len(state.current):
        state.adopt(candidate)
    return verdict.same
