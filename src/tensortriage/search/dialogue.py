"""A pass is a conversation: it proposes candidates and receives verdicts; it never runs anything itself.

A pass is a generator that yields `Ask` and is sent one verdict per candidate. It knows neither where checks run, nor
how often, nor that some are answered from a cache, so the same pass works serially, in parallel, resumed and replayed.
It must be a function of the answers alone: no clock, no randomness, no order of sets.

Invariant: `SearchState.current` is always a subset that a verdict has called the same failure.
"""

import dataclasses
import enum
from collections.abc import Callable, Generator
from typing import Generic, TypeAlias

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.search.problem import OracleVerdict, SearchProblem, T


class Care(enum.Enum):
    """The certainty required of an answer; it matters only for intermittent faults."""

    QUICK = "quick"
    """A failure may be overlooked now and then; the final pass tests again."""
    SURE = "sure"
    """The stated confidence of the result rests on this answer."""
    MEASURE = "measure"
    """Ask until it is known how often the candidate fails."""


@frozen_dataclass
class Ask(Generic[T]):
    """Candidates to be checked; their answers do not depend on each other and are wanted together."""

    candidates: tuple[frozenset[T], ...]
    care: Care = Care.QUICK


Dialogue: TypeAlias = Generator[Ask[T], tuple[OracleVerdict, ...], None]
Reply: TypeAlias = Generator[Ask[T], tuple[OracleVerdict, ...], bool]
Pass: TypeAlias = Callable[["SearchState[T]"], Dialogue[T]]


class Minimality(enum.Enum):
    """The proven minimality of the result; the value is the word in files."""

    ONE_MINIMAL = "one-minimal"
    """Without any single one of its items it no longer fails the same way: each was tested."""
    BLOCK_MINIMAL = "block-minimal"
    """Without any one of its blocks of neighbouring items it no longer fails the same way: each was tested."""
    BUDGET = "budget"
    """The smallest found so far."""


@dataclasses.dataclass
class SearchState(Generic[T]):
    """The state of a search; owned by the current pass.

    Attributes:
        current: Smallest subset known to fail.
        believed: Items of it thought to be needed, in the order found. Never relied on for the result.
        false_pass: Chance that a candidate which does fail is reported otherwise.
        minimality: Proven minimality of ``current``.
        block_items: Size of the blocks, when block-minimal.
        checks_left: Rough number of checks still to come.
    """

    problem: SearchProblem[T]
    current: frozenset[T]
    believed: list[T] = dataclasses.field(default_factory=list)
    false_pass: float = 0.0
    minimality: Minimality = Minimality.BUDGET
    block_items: int = 0
    checks_left: float = 0.0

    def shrinks_to(self, candidate: frozenset[T]) -> Reply[T]:
        """Test one candidate; make it the current one if it fails the same way, and return whether it did."""
        (verdict,) = yield Ask((candidate,), Care.QUICK)
        if verdict.same:
            self.adopt(candidate)
        return verdict.same

    def adopt(self, candidate: frozenset[T]) -> None:
        """Go on with a candidate that a verdict has called the same failure."""
        if candidate != self.current:
            self.current = candidate
            self.believed = [item for item in self.believed if item in candidate]
            self.minimality = Minimality.BUDGET
            self.block_items = 0
