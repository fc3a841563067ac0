"""The input of a search: items in order, and an oracle that decides whether a subset of them still fails the same way.

Everything beyond that is optional and only makes the search shorter: weights, suspicion, neighbourhood. They set the
order of the questions, never the answers; a subset is believed to fail because the oracle found so.
"""

import dataclasses
import enum
import functools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass

T = TypeVar("T", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


REMEMBERED = 8
"""Candidates whose order is kept: the current one, the smallest failing one so far, and those around them."""


class CandidateOutcome(enum.Enum):
    """The outcome of a candidate; the value is the word in files."""

    SAME = "same"
    """Fails as the whole does."""
    OTHER = "other"
    """Fails, but in another way: not the failure of this search, and worth keeping."""
    PASS = "pass"
    """Does not fail."""
    UNRESOLVED = "unresolved"
    """Unresolved: it would not build, or the check itself died or took too long."""


@frozen_dataclass
class OracleVerdict:
    """Answer of the oracle to one candidate.

    Attributes:
        outcome: Outcome of the run. The oracle decides whether a failure is the same one.
        signature: How it failed, in the oracle's own words; opaque here. It separates failures of different kinds.
        detail: One line for a person.
    """

    outcome: CandidateOutcome
    signature: str = ""
    detail: str = ""

    @property
    def same(self) -> bool:
        """Whether the candidate fails as the whole does."""
        return self.outcome is CandidateOutcome.SAME


class Oracle(Protocol[T_contra]):
    """Judges a candidate."""

    def __call__(self, candidate: tuple[T_contra, ...], attempt: int, /) -> OracleVerdict:
        """Check a candidate: items in the order of the problem, at least one.

        ``attempt`` counts from 0 the runs of this candidate, for faults that come and go; an answer is final for its
        candidate and attempt. An exception ends the search, so a failure of the engine under test must come back as a
        verdict instead.
        """
        ...


def _alone(item: object) -> tuple[()]:
    return ()


@dataclasses.dataclass(frozen=True)
class SearchProblem(Generic[T]):
    """Items, as few as possible of which are to be kept.

    Attributes:
        items: Everything, in an order in which related items are close together (topological order).
        oracle: Decides whether a subset still fails.
        key: Content key of a candidate for the cache: a digest of all that the answer depends on.
        weights: How much an item holds (a region its nodes): chance, before any check, that a needed one is in it. 1
            for items left out; positive.
        suspicion: Evidence against an item (its local error), in any unit; 0 for items left out. The most suspect item
            is assumed to be needed until the final pass has tested it.
        neighbours: Items one step away in either direction. Faults of several items are mostly faults of neighbours.
        premised: Given the runs of the whole, which failed, returns the suspicion; None where that is known before.

    Raises:
        UsageError: For no items, an item given twice, or weights and suspicions that are no such numbers
            (``search-problem-invalid``).
    """

    items: tuple[T, ...]
    oracle: Oracle[T]
    key: Callable[[tuple[T, ...]], str]
    weights: Mapping[T, float] = dataclasses.field(default_factory=dict)
    suspicion: Mapping[T, float] = dataclasses.field(default_factory=dict)
    neighbours: Callable[[T], Iterable[T]] = _alone
    premised: Callable[[Sequence[OracleVerdict]], Mapping[T, float]] | None = None

    def __post_init__(self) -> None:
        if not self.items:
            raise _invalid("there is nothing to search in")
        if len(self.whole) != len(self.items):
            raise _invalid("an item is given twice")
        for item, weight in self.weights.items():
            if not (0.0 < weight < math.inf):
                raise _invalid(f"the weight of {item!r} is {weight}, not a positive number")
        for item, amount in self.suspicion.items():
            if not amount >= 0.0:
                raise _invalid(f"the suspicion of {item!r} is {amount}, not 0 or more")

    @functools.cached_property
    def position(self) -> Mapping[T, int]:
        """Index of every item."""
        return dict(zip(self.items, range(len(self.items)), strict=True))

    @functools.cached_property
    def whole(self) -> frozenset[T]:
        """All items."""
        return frozenset(self.items)

    @functools.cached_property
    def walks(self) -> dict[T, dict[T, int]]:
        """Steps to the items around the last few that were walked from; see `tensortriage.search.passes.ranking`."""
        return {}

    def weight(self, item: T) -> float:
        """Return the weight of an item."""
        return self.weights.get(item, 1.0)

    def size(self, candidate: frozenset[T]) -> float:
        """Return the weight of a candidate; exact whatever the order."""
        heavy = [weight for item, weight in self.weights.items() if item in candidate]
        return math.fsum(heavy) + (len(candidate) - len(heavy))

    def suspected(self, item: T) -> float:
        """Return the suspicion of an item."""
        return self.suspicion.get(item, 0.0)

    def ordered(self, candidate: Iterable[T], within: tuple[T, ...] = ()) -> tuple[T, ...]:
        """Return items in the order of the problem; the last few sets are remembered.

        Args:
            candidate: The items.
            within: Items in order among which these probably are; looking there first is faster than among all.
        """
        if not isinstance(candidate, frozenset):
            return self._sort(candidate)
        found = self._remembered.pop(candidate, None) or self._pick(candidate, within)
        self._remembered[candidate] = found
        if len(self._remembered) > REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        return found

    @functools.cached_property
    def _remembered(self) -> dict[frozenset[T], tuple[T, ...]]:
        return {}

    def _pick(self, candidate: frozenset[T], within: tuple[T, ...]) -> tuple[T, ...]:
        for among in (within, self.items):
            if len(candidate) <= len(among) < len(candidate) * len(candidate).bit_length():  # else sorting is faster
                found = tuple(filter(candidate.__contains__, among))
                if len(found) == len(candidate):
                    return found
        return self._sort(candidate)

    def _sort(self, candidate: Iterable[T]) -> tuple[T, ...]:
        return tuple(sorted(candidate, key=self.position.__getitem__))


def _invalid(reason: str) -> UsageError:
    return UsageError(reason, slug="search-problem-invalid", cure="correct the items given to the search")
