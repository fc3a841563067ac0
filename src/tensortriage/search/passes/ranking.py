"""Where would the next needed item be? A chance for every item, and the items in the order of that chance.

Three readings are mixed, because it is unknown beforehand which one holds: the needed items are near those already
found (most faults of several ops are faults of neighbours), or they are the suspect ones, or they are anywhere. Near
and suspect items get a chance that falls with their rank so that the search for one at rank r costs about 1.5 log2(r)
checks, whatever the number of items; mixing costs a check or so more than knowing the right reading would. Found items
show which reading holds, by Bayes' rule.
"""

import collections
import enum
import functools
import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.search.problem import SearchProblem, T

FALL = 1.5
"""The chance at rank r is proportional to r to the power of minus this; above 1, or most of it would lie far away."""
LEAST_SHARE = 0.1
"""No reading is ever given up."""
LATEST = 4
"""The number of items found last whose in-between items are ranked; a walk through the graph for each."""

NEAREST = 4096
"""Items whose steps from the found ones are counted; among those further away only the order of the problem decides.
With the fall above, all of them together have 1 % of the chance of the near ones, and graphs are larger."""


class PointerReading(enum.Enum):
    """A clue to the next needed item."""

    NEAR = "near"
    SUSPECT = "suspect"
    ANYWHERE = "anywhere"


Shares = Mapping[PointerReading, float]
FIRST_SHARES: Shares = {PointerReading.NEAR: 0.3, PointerReading.SUSPECT: 0.3, PointerReading.ANYWHERE: 0.4}
"""Chance that each reading is the right one, before anything is known."""


@frozen_dataclass
class Ranking(Generic[T]):
    """Items, likeliest first.

    Attributes:
        chances: Chance of each to be the next needed one; they sum to 1.
        parts: Contribution of each reading to those chances; readings that are uninformative here are left out.
    """

    items: tuple[T, ...]
    chances: tuple[float, ...]
    parts: Mapping[PointerReading, tuple[float, ...]]

    def learn(self, shares: Shares, place: int) -> Shares:
        """Return the chances of the readings after the needed item was found at a place of this ranking."""
        total = math.fsum(shares[reading] for reading in self.parts)
        posterior = {
            reading: max(LEAST_SHARE, total * part[place] / self.chances[place]) for reading, part in self.parts.items()
        }
        return {**shares, **posterior}


def rank(problem: SearchProblem[T], pool: Iterable[T], found: Sequence[T], shares: Shares = FIRST_SHARES) -> Ranking[T]:
    """Return the items of ``pool`` by their chance to be needed.

    Args:
        problem: Weights, suspicion and neighbourhood.
        pool: Items that may be needed; at least one.
        found: Items thought to be needed.
        shares: Chance that each reading is the right one, up to a factor.
    """
    ordered = problem.ordered(pool)
    weights = [problem.weight(item) for item in ordered] if problem.weights else [1.0] * len(ordered)
    readings = {PointerReading.ANYWHERE: _normal(weights)}
    start: Sequence[int] = range(len(ordered))
    if found:
        start = _by_nearness(problem, ordered, found)
        readings[PointerReading.NEAR] = _by_rank(start)
    if problem.suspicion and any(problem.suspected(item) > 0.0 for item in ordered):
        readings[PointerReading.SUSPECT] = _by_suspicion([problem.suspected(item) for item in ordered])
    total = math.fsum(shares[reading] for reading in readings)
    parts = {reading: _scaled(values, shares[reading] / total) for reading, values in readings.items()}
    chances = list(map(math.fsum, zip(*parts.values(), strict=True)))
    # Per weight: a heavy item has a high chance because it holds much, not because each part of it is suspect.
    density = list(map(operator.truediv, chances, weights)) if problem.weights else chances
    # Equal ones stay in their order. Nearness alone gives nearly the final one, and sorting what is sorted is linear.
    order = sorted(start, key=density.__getitem__, reverse=True)
    return Ranking(
        tuple(map(ordered.__getitem__, order)),
        tuple(map(chances.__getitem__, order)),
        {reading: tuple(map(values.__getitem__, order)) for reading, values in parts.items()},
    )


def distances(problem: SearchProblem[T], sources: Sequence[T]) -> Mapping[T, int]:
    """Return the number of steps from the nearest source, for the nearest `NEAREST` items that can be reached."""
    return _walked(problem, sources) if len(sources) > LATEST else _merged(_walks(problem, sources))


def _walks(problem: SearchProblem[T], sources: Sequence[T]) -> list[dict[T, int]]:
    """Return the steps from each of given sources; the latest are cached."""
    known = problem.walks
    found = {source: known.get(source) or _walked(problem, [source]) for source in sources}
    known.clear()
    known.update(found)
    return list(found.values())


def _merged(walks: Sequence[dict[T, int]]) -> Mapping[T, int]:
    """Return the union of `_walked` from several sources."""
    if len(walks) == 1:
        return walks[0]
    steps: dict[T, int] = {}
    for walk in sorted(walks, key=len, reverse=True):
        for item, count in walk.items():
            if steps.setdefault(item, count) > count:
                steps[item] = count
    levels = collections.Counter(steps.values())
    upto = dict(zip(sorted(levels), itertools.accumulate(levels[level] for level in sorted(levels)), strict=True))
    farthest = next((level for level, count in upto.items() if count >= NEAREST), max(upto))
    return {item: count for item, count in steps.items() if count <= farthest}


def _walked(problem: SearchProblem[T], sources: Sequence[T]) -> dict[T, int]:
    steps = dict.fromkeys(sources, 0)
    edge = list(sources)
    while edge and len(steps) < NEAREST:
        reached: list[T] = []
        for item in edge:
            for neighbour in problem.neighbours(item):
                if neighbour not in steps and neighbour in problem.position:
                    steps[neighbour] = steps[item] + 1
                    reached.append(neighbour)
        edge = reached
    return steps


def _by_nearness(problem: SearchProblem[T], items: Sequence[T], found: Sequence[T]) -> list[int]:
    """Return indices of items by steps from the items found, then suspicion, then distance in the problem's order.

    Of items as near, those between found ones come before those on their far sides: the end of the shortest failing
    prefix is the furthest of several needed neighbours, so the others mostly lie on the way to it.
    """
    steps = distances(problem, found)
    walks = _walks(problem, found[-LATEST:]) if len(found) > 1 else []
    apart = _apart(len(problem.items), [problem.position[item] for item in found])
    steps_away = list(map(apart.__getitem__, map(problem.position.__getitem__, items)))
    reached = list(map(steps.__contains__, items))

    near = list(itertools.compress(range(len(items)), reached))
    chosen = list(map(items.__getitem__, near))
    ways = [map(walk.get, chosen, itertools.repeat(math.inf)) for walk in walks]
    detours = list(map(sum, zip(*ways, strict=True)))
    doubts = [-problem.suspected(item) for item in chosen] if problem.suspicion else []
    near = _sorted_by(
        near, [list(map(steps.__getitem__, chosen)), detours, doubts, [steps_away[index] for index in near]]
    )
    far = sorted(itertools.compress(range(len(items)), map(operator.not_, reached)), key=steps_away.__getitem__)
    if problem.suspicion:
        far.sort(key=lambda index: -problem.suspected(items[index]))
    return [*near, *far]


def _sorted_by(values: Sequence[int], keys: Sequence[Sequence[float]]) -> list[int]:
    """Return values by several keys each, the most important first; a key without entries is the same for all.

    One stable sort a key, the least important first: numbers alone are compared several times faster than in tuples.
    """
    order = list(range(len(values)))
    for key in reversed(keys):
        if key:
            order.sort(key=key.__getitem__)
    return list(map(values.__getitem__, order))


def _apart(count: int, places: Sequence[int]) -> list[int]:
    """Return for each position the distance to the nearest of the places."""
    found = sorted(places)
    middles = [(left + right) // 2 for left, right in itertools.pairwise(found)]
    apart: list[int] = []
    for place, begin, end in zip(
        found, [0, *(m + 1 for m in middles)], [*(m + 1 for m in middles), count], strict=True
    ):
        apart.extend(range(place - begin, 0, -1))
        apart.extend(range(end - max(begin, place)))
    return apart


def _by_suspicion(amounts: Sequence[float]) -> list[float]:
    """Return chances half by amount, which is right for outstanding ones, and half by rank, which needs no scale."""
    most = max(amounts)
    by_amount = _normal([1.0 if amount == most else amount / most for amount in amounts])  # inf / inf is 1 here
    by_rank = _by_rank(sorted(range(len(amounts)), key=lambda i: (-amounts[i], i)))
    return [(amount + place) / 2.0 for amount, place in zip(by_amount, by_rank, strict=True)]


def _by_rank(order: Sequence[int]) -> list[float]:
    """Return chances that fall with the rank; ``order`` holds indices, the first rank first."""
    falling = _normal(_falling(1 << (len(order) - 1).bit_length())[: len(order)])
    chances = [0.0] * len(order)
    for index, chance in zip(order, falling, strict=True):
        chances[index] = chance
    return chances


@functools.lru_cache(maxsize=2)
def _falling(count: int) -> list[float]:
    return [place**-FALL for place in range(1, count + 1)]


def _scaled(amounts: Sequence[float], factor: float) -> list[float]:
    return [factor * amount for amount in amounts]


def _normal(amounts: Sequence[float]) -> list[float]:
    total = math.fsum(amounts)
    return [amount / total for amount in amounts]
