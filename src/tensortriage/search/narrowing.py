"""Find the needed items one after the other, each as the end of the shortest failing prefix of a ranking.

Rank what is not yet believed to be needed, likeliest first. Some shortest prefix of the ranking, together with the
believed items, still fails; its last item is needed, everything behind it is not. Believe that item, rank the rest
anew around it, and go on until the believed items fail alone. Every step only deletes (a candidate is what is left
over, never the deleted part), so the fault cannot get lost, and every cut deletes as much as keeps both answers about
equally likely, as in probabilistic delta debugging (Wang et al., ESEC/FSE 2021; its counter form, Zhang et al., ICSE
2025). What is new is that the probabilities come from the ranking.

For one item this is bisection, for d items anywhere about d log2(N / d) + 2 d checks (group testing's bound is
log2 C(N, d) for d known), for d neighbours about log2(N) + 2 d log2(d) + 2 d.
"""

from typing import Generic

from tensortriage.search.bisection import PrefixSearch, Trust
from tensortriage.search.dialogue import Dialogue, Reduction
from tensortriage.search.problem import T
from tensortriage.search.ranking import Ranking, rank

NEARNESS = 0.5
"""Share of faults of several items that are faults of neighbours, before anything is known."""
NEARNESS_RANGE = (0.2, 0.8)
FOUND_PER_MISSING = 3.0
"""With k items found one expects k / 3 more to be missing, but at least one: most faults need few items."""
DENSE = 0.25
"""Share of needed items above which asking about every single one is cheaper; the final pass does that."""
SMALL = 8
"""Pools up to this size are never left to the final pass."""


def narrow(state: Reduction[T]) -> Dialogue[T]:
    """Shrink to the items that are probably needed; cheap, and right unless cuts hid the fault."""
    expectation: _Expectation[T] = _Expectation()
    trust = Trust(state.false_pass)
    suspect = max(state.problem.ordered(state.current), key=state.problem.suspected)
    if state.problem.suspected(suspect) > 0.0:
        state.believed = [suspect]
    while pool := state.current.difference(state.believed):
        missing = expectation.missing(len(state.believed), len(pool))
        if missing >= DENSE * len(pool) and len(pool) > SMALL:
            return
        ranking = rank(state.problem, pool, state.believed, nearness=expectation.nearness)
        chances = _lengths(ranking, missing)
        known = () if state.believed else (0,)
        if known:
            chances[0] = 0.0  # nothing at all never fails
        search = PrefixSearch(chances, share=state.same_share, trust=trust, known=known)
        yield from _shortest(state, ranking, search)
        if search.end == 0:
            return
        expectation.learn(ranking, search.end - 1, known=bool(state.believed))
        state.believed.append(ranking.items[search.end - 1])


def _shortest(state: Reduction[T], ranking: Ranking[T], search: PrefixSearch) -> Dialogue[T]:
    believed = frozenset(state.believed)
    while (cut := search.next_cut()) is not None:
        state.checks_left = search.end.bit_length() + 2.0 * (len(believed) + 1)
        if (yield from state.shrinks_to(believed.union(ranking.items[:cut]))):
            search.fails(cut)
        else:
            search.passes(cut)


def _lengths(ranking: Ranking[T], missing: float) -> list[float]:
    """Return the chance of every length of the shortest failing prefix, 0 included.

    The number of missing items is taken as geometric with mean ``missing``, each lying in the first ranks with chance
    m independently; all of them lie there with chance 1 / (1 + missing (1 - m)), its probability generating function.
    """
    reached, chances, before = 0.0, [1.0 / (1.0 + missing)], 1.0 / (1.0 + missing)
    for chance in ranking.chances:
        reached = min(1.0, reached + chance)
        upto = 1.0 / (1.0 + missing * (1.0 - reached))
        chances.append(upto - before)
        before = upto
    return chances


class _Expectation(Generic[T]):
    """What the items found so far say about those still missing."""

    def __init__(self) -> None:
        self.nearness = NEARNESS
        self._gaps: list[int] = []

    def missing(self, found: int, pool: int) -> float:
        """Return how many items are expected to be needed besides those found, given that some may be."""
        expected = max(1.0, found / FOUND_PER_MISSING)
        if len(self._gaps) >= 2:  # two needed items close together in the ranking: there may be many
            expected = max(expected, pool / (4.0 * sum(self._gaps[-2:])))
        return expected

    def learn(self, ranking: Ranking[T], place: int, *, known: bool) -> None:
        """Take in that the needed item was found at a place of the ranking.

        The chance that nearness was the right reading follows by Bayes' rule, kept within bounds since it may change.
        """
        self._gaps.append(len(ranking.items) - place)
        if known:
            least, most = NEARNESS_RANGE
            self.nearness = min(most, max(least, ranking.near[place] / ranking.chances[place]))
