"""The record of a search: every answer that it used, the outcome of each candidate, and the remaining budget."""

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeAlias

from tensortriage.search.answers.answer_cache import AnswerCache
from tensortriage.search.execution.executors import OracleQuestion
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, SearchProblem, T
from tensortriage.search.search_result import Interesting, Progress, SearchBudget, SearchStep, SearchStop

Candidate: TypeAlias = frozenset[T]


class StoppedError(Exception):
    """The budget is used up; caught by the driver."""

    def __init__(self, stop: SearchStop) -> None:
        super().__init__(stop.value)
        self.stop = stop


class SearchRecord(Generic[T]):
    """Uses answers on behalf of one search, and keeps the record.

    Args:
        problem: The problem.
        answers: The source of answers.
        budget: Limits of the search.
        observe: Receives every answer.

    Attributes:
        runs: Outcome of every run of a candidate, in order.
        history: Every answer used, in order.
        cache_hits: Number of them that were there before.
        best: Smallest subset seen to fail the same way; None before there is any.
        others: Smallest candidate for every other way of failing.
        checks_left: Rough number of checks still to come.
    """

    def __init__(
        self,
        problem: SearchProblem[T],
        answers: AnswerCache[T],
        budget: SearchBudget,
        observe: Callable[[Progress[T]], None] | None = None,
    ) -> None:
        self.problem = problem
        self._answers = answers
        self._budget = budget
        self._observe = observe
        self._started = time.monotonic()
        self._limited_from = self._started if problem.premised is None else math.inf
        self._smallest = problem.items
        self.runs: dict[Candidate[T], list[OracleVerdict]] = {}
        self.history: list[SearchStep] = []
        self.cache_hits = 0
        self.best: Candidate[T] | None = None
        self.others: dict[str, Interesting[T]] = {}
        self.checks_left = 0.0

    @property
    def seconds(self) -> float:
        """Time since the search began, without the time to find suspects."""
        return time.monotonic() - self._started

    @contextlib.contextmanager
    def suspecting(self) -> Iterator[None]:
        """Exclude the time spent inside on finding suspects; only later work is limited."""
        begun = time.monotonic()
        yield
        self._limited_from = time.monotonic()
        self._started += self._limited_from - begun

    def verdict(self, candidate: Candidate[T]) -> OracleVerdict | None:
        """Return the known verdict on a candidate, without a check."""
        runs = self.runs.get(candidate)
        return overall(runs) if runs else None

    def passed(self, candidate: Candidate[T]) -> bool:
        """Return whether all that is known of a candidate is that it passes."""
        known = self.verdict(candidate)
        return known is not None and known.outcome is CandidateOutcome.PASS

    def removals(self, candidate: Candidate[T]) -> dict[T, OracleVerdict]:
        """Return the known verdicts on a candidate without one of its items, by item."""
        tested = {
            item: overall(runs)
            for smaller, runs in self.runs.items()
            if runs and len(smaller) == len(candidate) - 1 and smaller < candidate
            for item in candidate - smaller
        }
        return {item: tested[item] for item in self.problem.ordered(tested)}

    def known(self, candidate: Candidate[T]) -> OracleVerdict | None:
        """Return the verdict of the first run of a candidate where it is there, used or not."""
        answer = self._answers.known(self.question(candidate, 0))
        return answer.verdict if answer else None

    def question(self, candidate: Candidate[T], attempt: int) -> OracleQuestion[T]:
        """Return the question about one run of a candidate."""
        return OracleQuestion(self.problem.ordered(candidate, self._smallest), attempt)

    def run(self, candidate: Candidate[T], ahead: Iterable[OracleQuestion[T]]) -> OracleVerdict:
        """Get the answer to the next run of a candidate, and record it.

        Raises:
            StoppedError: When the budget is used up.
        """
        runs = self.runs.setdefault(candidate, [])
        question = self.question(candidate, len(runs))
        if self._budget.checks is not None and len(self.history) >= self._budget.checks:
            raise StoppedError(SearchStop.CHECK_BUDGET)
        late = self._budget.seconds is not None and time.monotonic() - self._limited_from >= self._budget.seconds
        if late and self._answers.known(question) is None:
            raise StoppedError(SearchStop.TIME_BUDGET)
        answer = self._answers.answer(question, iter(ahead))
        if answer.error is not None:
            raise answer.error
        verdict = answer.verdict
        assert verdict is not None
        runs.append(verdict)
        kept, size = self._smallest, len(candidate)
        step = SearchStep(size, question.attempt, verdict.outcome, answer.cached, answer.seconds, len(kept))
        self.history.append(step)
        self.cache_hits += answer.cached
        self.checks_left = max(0.0, self.checks_left - 1.0)
        if verdict.same and (self.best is None or self.problem.size(candidate) < self.problem.size(self.best)):
            self.best, self._smallest = candidate, question.candidate
        known = self.others.get(verdict.signature)
        if verdict.outcome is CandidateOutcome.OTHER and (known is None or size < len(known.candidate)):
            self.others[verdict.signature] = Interesting(question.candidate, verdict)
        if self._observe is not None:
            mean = self._answers.fresh_seconds / self._answers.fresh if self._answers.fresh else None
            self._observe(
                Progress(
                    candidate=question.candidate,
                    verdict=verdict,
                    step=step,
                    kept=kept,
                    checks=len(self.history),
                    cache_hits=self.cache_hits,
                    seconds=self.seconds,
                    checks_left=self.checks_left,
                    seconds_left=None if mean is None else mean * self.checks_left,
                )
            )
        return verdict


def overall(runs: Sequence[OracleVerdict]) -> OracleVerdict:
    """Return the verdict of several runs of one candidate: one failure is enough."""
    for wanted in (CandidateOutcome.SAME, CandidateOutcome.OTHER, CandidateOutcome.PASS):
        for verdict in runs:
            if verdict.outcome is wanted:
                return verdict
    return runs[-1]
