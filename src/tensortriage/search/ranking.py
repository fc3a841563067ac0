"""Where would the next needed item be? A chance for every item, and the items in the order of that chance.

Three readings are mixed, because nothing says beforehand which one holds: needed items lie near those already found
(most faults of several ops are faults of neighbours), or are the suspect ones, or are anywhere. Near and suspect items
get a chance of one over their rank, so that the search for one at rank r costs about log2(r) checks, whatever the
number of items; the mixture costs a check or so more than knowing the right reading would.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Generic

from tensortriage.search.problem import Problem, T

SUSPICION = 0.5
"""Share of the mixture for suspicion, when there is any; half of it by rank, half by amount."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ranking(Generic[T]):
    """Items, likeliest first.

    Attributes:
        items: The items.
        chances: Chance of each to be the next needed one; they sum to 1.
        near: Part of each chance that is due to nearness.
    """

    items: tuple[T, ...]
    chances: tuple[float, ...]
    near: tuple[float, ...]


def rank(problem: Problem[T], pool: Iterable[T], found: Sequence[T], *, nearness: float) -> Ranking[T]:
    """Return the items of ``pool`` by their chance to be needed.

    Args:
        problem: Weights, suspicion and neighbourhood.
        pool: Items that may be needed; at least one.
        found: Items thought to be needed.
        nearness: Share of the mixture for nearness to ``found``; not used when none is found.
    """
    ordered = problem.ordered(pool)
    anywhere = _shares([problem.weight(item) for item in ordered])
    if any(problem.suspected(item) for item in ordered):
        anywhere = [
            (1.0 - SUSPICION) * even + SUSPICION * suspect
            for even, suspect in zip(anywhere, _suspicions(problem, ordered), strict=True)
        ]
    near = [nearness * share for share in _nearness(problem, ordered, found)] if found else [0.0] * len(ordered)
    rest = 1.0 - (nearness if found else 0.0)
    chances = [close + rest * share for close, share in zip(near, anywhere, strict=True)]
    # Per weight: a heavy item is asked about early because it holds much, not because each part of it is suspect.
    order = sorted(range(len(ordered)), key=lambda i: (-chances[i] / problem.weight(ordered[i]), i))
    return Ranking(tuple(ordered[i] for i in order), tuple(chances[i] for i in order), tuple(near[i] for i in order))


def _suspicions(problem: Problem[T], items: Sequence[T]) -> list[float]:
    amounts = [problem.suspected(item) for item in items]
    most = max(amounts)
    by_amount = _shares([1.0 if amount == most else amount / most for amount in amounts])  # inf / inf is 1 here
    by_rank = _by_rank(items, sorted(range(len(items)), key=lambda i: (-amounts[i], i)))
    return [(amount + place) / 2.0 for amount, place in zip(by_amount, by_rank, strict=True)]


def _nearness(problem: Problem[T], items: Sequence[T], found: Sequence[T]) -> list[float]:
    steps = distances(problem, found)
    position = problem.position
    places = [position[item] for item in found]

    def closeness(index: int) -> tuple[float, float, int, int]:
        item = items[index]
        beside = min(abs(position[item] - place) for place in places)
        return (steps.get(item, math.inf), -problem.suspected(item), beside, index)

    return _by_rank(items, sorted(range(len(items)), key=closeness))


def distances(problem: Problem[T], sources: Sequence[T]) -> dict[T, int]:
    """Return the number of steps from the nearest source, for every item that can be reached."""
    steps = dict.fromkeys(sources, 0)
    edge = list(sources)
    while edge:
        reached: list[T] = []
        for item in edge:
            for neighbour in problem.neighbours(item):
                if neighbour not in steps and neighbour in problem.position:
                    steps[neighbour] = steps[item] + 1
                    reached.append(neighbour)
        edge = reached
    return steps


def _by_rank(items: Sequence[T], order: Sequence[int]) -> list[float]:
    """Return one over the rank of every item, in the order of the items, as shares."""
    chances = [0.0] * len(items)
    for place, index in enumerate(order, start=1):
        chances[index] = 1.0 / place
    return _shares(chances)


def _shares(amounts: Sequence[float]) -> list[float]:
    total = math.fsum(amounts)
    return [amount / total for amount in amounts]
