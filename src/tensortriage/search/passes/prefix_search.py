"""Find the needed items one after the other, each as the end of the shortest failing prefix of a ranking.

Rank the items that are not yet believed to be needed, likeliest first. Some shortest prefix of the ranking, together
with the believed items, still fails; its last item is needed, everything behind it is not. Believe that item, rank the
others again around it, and go on until the believed items fail alone. Every step only deletes (a candidate is the
remaining part, never the deleted one), so the fault cannot get lost, and every cut deletes as much as keeps both
answers about equally likely, as in probabilistic delta debugging (Wang et al., ESEC/FSE 2021; arXiv:2408.04735). New is
that the probabilities come from the ranking.

For one item this is bisection, for d items anywhere about d log2(N / d) + 2 d checks (group testing's bound is
log2 C(N, d) for d known), for d neighbours about log2(N) + 4 d.
"""

import itertools
import operator
from collections.abc import Sequence

from tensortriage.search.dialogue import Dialogue, SearchState
from tensortriage.search.passes.bisection import PrefixSearch, Trust
from tensortriage.search.passes.ranking import FIRST_SHARES, Ranking, rank
from tensortriage.search.problem import T

FOUND_PER_MISSING = 3.0
"""With k items found one expects k / 3 more to be missing, but at least one: most faults need few items."""
DENSE = 0.25
"""Share of needed items above which going through them one by one is cheaper; the next pass does that."""
SMALL = 8
"""Pools up to this size are never left to the next pass."""


def narrow(state: SearchState[T]) -> Dialogue[T]:
    """Shrink to the items that are probably needed; cheap, and right unless cuts hid the fault."""
    shares, gaps = FIRST_SHARES, list[int]()
    trust = Trust(state.false_pass)
    if state.problem.suspicion:
        suspect = max(state.problem.ordered(state.current), key=state.problem.suspected)
        if state.problem.suspected(suspect) > 0.0:
            state.believed = [suspect]
    while pool := state.current.difference(state.believed):
        missing = _missing(len(state.believed), len(pool), gaps)
        if missing >= DENSE * len(pool) and len(pool) > SMALL:
            return
        alone = bool(state.believed) and missing <= 1.0  # then half of the chance is that no more are needed
        if alone:
            state.checks_left = _checks(state, len(pool))
            if (yield from state.shrinks_to(frozenset(state.believed))):
                return
        ranking = rank(state.problem, pool, state.believed, shares)
        chances = _lengths(ranking, missing)
        known = () if state.believed else (0,)
        if known:
            chances[0] = 0.0  # nothing at all never fails
        search = PrefixSearch(chances, trust=trust, known=known)
        if alone:
            search.passes(0)
        yield from _shortest(state, ranking, search)
        if search.end == 0:
            return
        shares = ranking.learn(shares, search.end - 1)
        if state.believed:
            gaps.append(len(pool) - search.end + 1)
        state.believed.append(ranking.items[search.end - 1])


def _shortest(state: SearchState[T], ranking: Ranking[T], search: PrefixSearch) -> Dialogue[T]:
    believed = frozenset(state.believed)
    while (cut := search.next_cut()) is not None:
        state.checks_left = _checks(state, search.end)
        if (yield from state.shrinks_to(believed.union(ranking.items[:cut]))):
            search.fails(cut)
        else:
            search.passes(cut)


def _checks(state: SearchState[T], end: int) -> float:
    """Return about how many checks are still to come, while the needed item is among the first so many."""
    return end.bit_length() + 2.0 * (len(state.believed) + 1)


def _lengths(ranking: Ranking[T], missing: float) -> list[float]:
    """Return the chance of every length of the shortest failing prefix, 0 included.

    The number of missing items is assumed to be geometric with mean ``missing``, each lying in the first ranks with
    chance m independently; all of them lie there with chance 1 / (1 + missing (1 - m)), its probability generating
    function.
    """
    within = itertools.accumulate(ranking.chances, initial=0.0)
    upto = [1.0 / (1.0 + missing * (1.0 - reached if reached < 1.0 else 0.0)) for reached in within]
    return [upto[0], *map(operator.sub, upto[1:], upto)]


def _missing(found: int, pool: int, gaps: Sequence[int]) -> float:
    """Return how many items are expected to be needed besides those found, given that any are."""
    expected = max(1.0, found / FOUND_PER_MISSING)
    if len(gaps) >= 2:  # the last ones were close together in the ranking: there may be many
        expected = max(expected, pool / (2.0 * sum(gaps[-2:])))
    return expected
