"""The two searches that Polygraphy has: the shortest failing piece that ends in one node, then one that starts there.

They are offered for comparison and for habit. What they cannot find: needed nodes in different branches, or far apart
on one path with unneeded ones between, because every piece they look at is all that leads to a node, or all behind it.
Unlike Polygraphy, bisection also asks about the first node instead of taking it for good.
"""

from collections.abc import Callable, Sequence

from tensortriage.reduce.pieces import Ends, Pieces
from tensortriage.search.dialogue import Ask, Dialogue, Pass, Reply, SearchState

Candidates = Sequence[frozenset[str]]
"""Pieces in the order in which they grow."""


def bisect(pieces: Pieces, ends: Ends) -> Pass[str]:
    """Return the pass that halves the position of the last node, then of the first: about 2 log2 N checks."""
    return _phases(pieces, ends, _bisect)


def linear(pieces: Pieces, ends: Ends) -> Pass[str]:
    """Return the pass that tries every node as the last, then every one as the first: N + M checks."""
    return _phases(pieces, ends, _linear)


def _phases(pieces: Pieces, ends: Ends, visit: Callable[[SearchState[str], Candidates], Dialogue[str]]) -> Pass[str]:
    def run(state: SearchState[str]) -> Dialogue[str]:
        if ends is not Ends.KEEP_OUTPUTS:
            yield from visit(state, [pieces.leading_to(item) for item in pieces.items])
        if ends is not Ends.KEEP_INPUTS:
            left = [item for item in pieces.items if item in state.current]
            yield from visit(state, [pieces.starting_at(item, state.current) for item in reversed(left)])

    return run


def _bisect(state: SearchState[str], candidates: Candidates) -> Dialogue[str]:
    good, bad = -1, len(candidates)
    while bad - good > 1:
        middle = (good + bad) // 2
        state.checks_left = float((bad - good).bit_length())
        if (yield from _ask(state, candidates[middle])):
            bad = middle
        else:
            good = middle


def _linear(state: SearchState[str], candidates: Candidates) -> Dialogue[str]:
    for number, candidate in enumerate(reversed(candidates)):
        state.checks_left = float(len(candidates) - number)
        yield from _ask(state, candidate)


def _ask(state: SearchState[str], candidate: frozenset[str]) -> Reply[str]:
    """Ask about a candidate, keep it when it is the smallest so far, and return whether it fails the same way."""
    (verdict,) = yield Ask((candidate,))
    if verdict.same and len(candidate) <= len(state.current):
        state.adopt(candidate)
    return verdict.same
