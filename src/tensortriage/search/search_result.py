"""The result of a search, and its progress reports."""

import enum
from collections.abc import Mapping
from typing import Generic

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.search.dialogue import Minimality
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, T
from tensortriage.search.statistics.repeats import Rate


class SearchStop(enum.Enum):
    """Why a search ended; the value is the word in files."""

    FINISHED = "finished"
    CHECK_BUDGET = "check-budget"
    TIME_BUDGET = "time-budget"
    INTERRUPTED = "interrupted"


@frozen_dataclass
class SearchBudget:
    """Limits on the cost of a search; None for no limit.

    Attributes:
        checks: Answers used, those from the cache included, so that a rerun stops at the same place.
        seconds: Wall-clock time, after which no new check is begun.

    Raises:
        UsageError: For a budget below zero (``search-budget-invalid``).
    """

    checks: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if (self.checks is not None and self.checks < 0) or (self.seconds is not None and not self.seconds >= 0.0):
            raise UsageError(
                f"a search cannot have the budget {self}", slug="search-budget-invalid", cure="give 0 or more"
            )


@frozen_dataclass
class SearchStep:
    """One answer that the search used.

    Attributes:
        items: Size of the candidate.
        attempt: 0 for the first run of this candidate.
        outcome: Outcome of the run.
        cached: Whether the answer was there already.
        seconds: How long the check took; 0 when cached.
        kept: Size of the smallest subset known to fail before this answer.
    """

    items: int
    attempt: int
    outcome: CandidateOutcome
    cached: bool
    seconds: float
    kept: int


@frozen_dataclass
class Interesting(Generic[T]):
    """A candidate that fails in another way: perhaps another fault, found for free."""

    candidate: tuple[T, ...]
    verdict: OracleVerdict


@frozen_dataclass
class Progress(Generic[T]):
    """The state of a running search, after every answer.

    Attributes:
        verdict: The answer.
        step: The step in figures.
        kept: Smallest subset known to fail before this answer.
        checks: Answers used so far.
        cache_hits: Those of them that were cached.
        seconds: Time since the search began.
        checks_left: Rough number of checks still to come.
        seconds_left: Their expected time, at the mean of those really made; None before the first.
    """

    candidate: tuple[T, ...]
    verdict: OracleVerdict
    step: SearchStep
    kept: tuple[T, ...]
    checks: int
    cache_hits: int
    seconds: float
    checks_left: float
    seconds_left: float | None


@frozen_dataclass
class SearchResult(Generic[T]):
    """The smallest subset found that fails the same way.

    Attributes:
        kept: Its items, in the order of the problem.
        verdict: The verdict on it.
        minimality: Proven minimality of the subset.
        block_items: Size of the blocks, when block-minimal; else 0.
        stop: Why the search ended.
        removals: Outcome of the rest without one of the kept items, where that was tested.
        checks: Runs of the oracle that the search rests on, the premise and cached ones included.
        repeats: Runs next to them that only confirmed answers in the end.
        candidates: Different subsets they were about.
        cache_hits: Checks answered from the cache.
        seconds: Wall-clock time.
        rate: How often the result failed when that was measured, else how often the whole did in the premise.
        confidence: Chance that every kept item is needed (or, block by block, every kept block), given that subsets
            which fail do so as often as the result; items whose removal was unresolved are left out. Where no run
            showed a fault that comes and goes, the chance that it does nevertheless is subtracted. None when the search
            was not brought to an end, nothing could be left out, or runs were not to be repeated.
        history: Every answer used, in order.
        others: The smallest candidate for every other way of failing that was met.
    """

    kept: tuple[T, ...]
    verdict: OracleVerdict
    minimality: Minimality
    block_items: int
    stop: SearchStop
    removals: Mapping[T, OracleVerdict]
    checks: int
    repeats: int
    candidates: int
    cache_hits: int
    seconds: float
    rate: Rate
    confidence: float | None
    history: tuple[SearchStep, ...]
    others: tuple[Interesting[T], ...]
