"""Which property goes with failure? Trials that have properties, ranked by how well each separates bad from good.

A property is scored by the Bayes factor of Gunel and Dickey (Biometrika 61:545, 1974) for a two-by-two table: how much
better two rates of failure, one with and one without the property, explain the trials than one rate for all, every rate
uniform beforehand. It needs no threshold, works for three trials as for three hundred, and does not require that the
property explain every failure. Properties that failures avoid are not accused.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from tensortriage.frozen_dataclass import frozen_dataclass

P = TypeVar("P", bound=Hashable)

NONE_OF_THEM = 0.5
"""Chance, before any trial, that no single property is to blame."""


@frozen_dataclass
class Trial(Generic[P]):
    """A trial: its properties, and whether it failed."""

    properties: frozenset[P]
    failed: bool


@frozen_dataclass
class Suspect(Generic[P]):
    """A property that failing trials have more often.

    Attributes:
        item: The property.
        bad_with: Failing trials that have it.
        good_with: Passing trials that have it.
        bad_without: Failing trials that lack it.
        good_without: Passing trials that lack it.
        factor: Bayes factor of "it matters" against "it does not".
        probability: Chance that this one is to blame, if at most one of all is; equal for properties that no trial
            separates.
    """

    item: P
    bad_with: int
    good_with: int
    bad_without: int
    good_without: int
    factor: float
    probability: float


def rank(trials: Sequence[Trial[P]]) -> tuple[Suspect[P], ...]:
    """Return the properties that speak for failure, the most telling first.

    Args:
        trials: The trials. Properties that all of them have, or none of the failing ones, are not ranked.
    """
    bad, good = _count(trials, True), _count(trials, False)
    every = list(dict.fromkeys(item for trial in trials for item in sorted(trial.properties, key=repr)))
    tables: list[tuple[P, int, int]] = []
    for item in every:
        bad_with = sum(trial.failed and item in trial.properties for trial in trials)
        good_with = sum(not trial.failed and item in trial.properties for trial in trials)
        if (bad_with, good_with) != (bad, good) and bad_with * good > good_with * bad:
            tables.append((item, bad_with, good_with))
    factors = [_factor(bad_with, good_with, bad, good) for _, bad_with, good_with in tables]
    whole = NONE_OF_THEM + (1.0 - NONE_OF_THEM) * math.fsum(factors) / max(1, len(factors))
    ranked = [
        Suspect(
            item,
            bad_with,
            good_with,
            bad - bad_with,
            good - good_with,
            factor,
            (1.0 - NONE_OF_THEM) * factor / len(tables) / whole,
        )
        for (item, bad_with, good_with), factor in zip(tables, factors, strict=True)
    ]
    return tuple(sorted(ranked, key=lambda suspect: -suspect.factor))


def _count(trials: Iterable[Trial[P]], failed: bool) -> int:
    return sum(trial.failed is failed for trial in trials)


def _factor(bad_with: int, good_with: int, bad: int, good: int) -> float:
    two_rates = _evidence(bad_with, good_with) + _evidence(bad - bad_with, good - good_with)
    return math.exp(two_rates - _evidence(bad, good))


def _evidence(bad: int, good: int) -> float:
    """Return the logarithm of the chance of a certain sequence of trials, their rate of failure uniform."""
    return math.lgamma(bad + 1) + math.lgamma(good + 1) - math.lgamma(bad + good + 2)
