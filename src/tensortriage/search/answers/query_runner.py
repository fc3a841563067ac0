"""The answers a search rests on: repeated where the fault comes and goes, counted, and never more than the budget.

A candidate fails as soon as one run of it failed the same way; it passes only after enough runs without. How many are
enough follows from the rate at which the whole fails, and for the final answers from the rate at which the result
does. Runs that helped to choose the result say nothing independent about it, so the final answers are always new runs.

A fault that failed in every run of the premise is taken for steady while searching, which one of 70 % is in a third of
all cases. So answers are asked again where they leave doubt: what passed although a part of it fails, at once; and in
the end what passed without an item of the result, unless so much passed without that item while searching that chance
is excluded at any rate. When one of these runs differs, the fault comes and goes, and the search goes on as for one.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Generic

from tensortriage.errors import UsageError
from tensortriage.search.answers.answer_cache import AnswerCache
from tensortriage.search.dialogue import Ask, Care
from tensortriage.search.execution.executors import OracleQuestion
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, SearchProblem, T
from tensortriage.search.search_result import Interesting, Progress, SearchBudget, SearchStep, SearchStop
from tensortriage.search.statistics.repeats import QUICK_RISK, Confirming, Rate, Repeats, runs_needed

Candidate = frozenset[T]


class StoppedError(Exception):
    """The budget is used up; caught by the driver."""

    def __init__(self, stop: SearchStop) -> None:
        super().__init__(stop.value)
        self.stop = stop


class QueryRunner(Generic[T]):
    """Asks for answers on behalf of one search, and keeps the record.

    Attributes:
        history: Every answer used, in order.
        best: Smallest subset seen to fail the same way; None before there is any.
        others: Smallest candidate for every other way of failing.
        rate: How often the whole failed.
        confidence: Chance that the last final answers are all right; None while there are none.
        repeats: How many of the answers only confirmed others.
    """

    def __init__(
        self,
        problem: SearchProblem[T],
        answers: AnswerCache[T],
        *,
        budget: SearchBudget,
        repeats: Repeats,
        observe: Callable[[Progress[T]], None] | None,
    ) -> None:
        self._problem = problem
        self._answers = answers
        self._budget = budget
        self._repeats = repeats
        self._observe = observe
        self._started = time.monotonic()
        self._runs: dict[Candidate[T], list[OracleVerdict]] = {}
        self._rates: dict[Candidate[T], Rate] = {}
        self._measuring = problem.whole
        self._final_runs: dict[Candidate[T], int] = {}
        self._failures = repeats.seen
        self._passed_again = 0
        self._doubted: dict[Candidate[T], None] = {}
        self._quick_runs = 1
        self._checks_left = 0.0
        self.history: list[SearchStep] = []
        self.cache_hits = 0
        self.best: Candidate[T] | None = None
        self._smallest = problem.items
        self.others: dict[str, Interesting[T]] = {}
        self.rate = Rate(1, 1)
        self.confidence: float | None = None
        self.repeats = 0

    @property
    def seconds(self) -> float:
        """Time since the search began."""
        return time.monotonic() - self._started

    @property
    def candidates(self) -> int:
        """Number of different candidates asked about."""
        return sum(1 for runs in self._runs.values() if runs)

    @property
    def false_pass(self) -> float:
        """Chance that a quick check overlooks a failure."""
        return 0.0 if self.rate.always else QUICK_RISK

    def measured(self, candidate: Candidate[T]) -> Rate:
        """Return how often a candidate fails: measured itself, else as the whole."""
        return self._rates.get(candidate, self.rate)

    def _overall(self, candidate: Candidate[T]) -> CandidateOutcome | None:
        known = self.verdict(candidate)
        return known.outcome if known else None

    def runs(self, candidate: Candidate[T]) -> Sequence[OracleVerdict]:
        """Return what every run of a candidate gave, in order."""
        return self._runs[candidate]

    def verdict(self, candidate: Candidate[T]) -> OracleVerdict | None:
        """Return what is known about a candidate, without asking."""
        runs = self._runs.get(candidate)
        return _overall(runs) if runs else None

    def removals(self, candidate: Candidate[T]) -> dict[T, OracleVerdict]:
        """Return what is known of a candidate without one of its items, for every item of which anything is."""
        asked = {
            item: _overall(runs)
            for smaller, runs in self._runs.items()
            if runs and len(smaller) == len(candidate) - 1 and smaller < candidate
            for item in candidate - smaller
        }
        return {item: asked[item] for item in self._problem.ordered(asked)}

    def expect(self, candidate: Candidate[T]) -> OracleVerdict | None:
        """Return the verdict that asking will give, where that is known already."""
        answer = self._answers.known(self._question(candidate, 0))
        verdict = answer.verdict if answer else None
        return verdict if verdict is not None and (verdict.same or self.rate.always) else None

    def premise(self) -> None:
        """See whether the whole fails, and how often.

        Raises:
            UsageError: When it does not (``premise-not-failing``), or that cannot be told (``premise-unresolved``).
            StoppedError: When the budget ends before.
        """
        whole = self._problem.whole
        self._run_all(whole, self._repeats.wholes)
        runs = self._runs[whole]
        if all(verdict.outcome is CandidateOutcome.PASS for verdict in runs):
            self._run(whole, self._repeats.passes, iter(()))
        if not any(verdict.same for verdict in runs):
            raise _premise_error(runs)
        if not all(verdict.same for verdict in runs):
            self._run_all(whole, self._repeats.measure)
        self.rate = Rate(sum(verdict.same for verdict in runs), len(runs))
        if self.rate.always:
            self.rate = Rate(*[len(runs) + self._repeats.seen] * 2)
        else:
            self._rates[whole] = self.rate
            self._quick_runs = runs_needed(self.rate.estimate, QUICK_RISK, limit=self._repeats.limit)

    def answer(self, ask: Ask[T], ahead: Iterator[Candidate[T]], *, checks_left: float) -> tuple[OracleVerdict, ...]:
        """Return the verdicts on the candidates of one question of a pass.

        Args:
            ask: The question.
            ahead: Candidates that may be asked about next, for idle processors.
            checks_left: Rough number of checks that the pass still expects.

        Raises:
            StoppedError: When the budget ends before.
        """
        self._checks_left = checks_left
        if ask.care is Care.MEASURE:
            self._measure(ask.candidates[0])
        if ask.care is Care.SURE and self.rate.always:
            self._confirm(ask.candidates)
        totals = [self._runs_wanted(candidate, ask) for candidate in ask.candidates]
        meanwhile = itertools.chain(self._remaining(ask.candidates, totals), self._first(ahead))
        verdicts = tuple(
            self._run(candidate, total, meanwhile) for candidate, total in zip(ask.candidates, totals, strict=True)
        )
        if ask.care is Care.SURE:
            self._conclude(ask, verdicts)
        for candidate, verdict in zip(ask.candidates, verdicts, strict=True):
            if verdict.same and self.rate.always and self._repeats.doubts:
                self._doubt(candidate)
        return verdicts

    def _question(self, candidate: Candidate[T], attempt: int) -> OracleQuestion[T]:
        return OracleQuestion(self._problem.ordered(candidate, self._smallest), attempt)

    def _remaining(self, candidates: Sequence[Candidate[T]], totals: Sequence[int]) -> Iterator[OracleQuestion[T]]:
        """Yield the questions that these candidates need if none of them fails: one of each, then another of each."""
        starts = [len(self._runs.get(candidate, ())) for candidate in candidates]
        for attempt in range(max(totals, default=0)):
            for candidate, start, total in zip(candidates, starts, totals, strict=True):
                if start <= attempt < total:
                    yield self._question(candidate, attempt)

    def _first(self, candidates: Iterator[Candidate[T]]) -> Iterator[OracleQuestion[T]]:
        return (self._question(candidate, 0) for candidate in candidates)

    def _runs_wanted(self, candidate: Candidate[T], ask: Ask[T]) -> int:
        """Return how many runs settle a candidate, those made included, unless one of them fails the same way."""
        made = len(self._runs.get(candidate, ()))
        if self.rate.always:
            return max(1, made) if ask.care is Care.SURE else 1
        if ask.care is Care.MEASURE:
            return made
        if ask.care is Care.QUICK:
            return max(self._quick_runs, made)
        done = self._final_runs.get(candidate, 0)
        risk = self._final_risk / len(ask.candidates)
        wanted = runs_needed(self._final_rate, risk, limit=self._repeats.limit)
        self._final_runs[candidate] = max(done, wanted)
        return made + max(0, wanted - done)

    @property
    def _final_rate(self) -> float:
        """Rate of failure that the result has at least; half of the risk is that it has less."""
        return self.measured(self._measuring).at_least(1.0 - self._final_risk)

    @property
    def _final_risk(self) -> float:
        return (1.0 - self._repeats.confidence) / 2.0

    def _measure(self, candidate: Candidate[T]) -> None:
        """Estimate how often a candidate fails, from new runs."""
        self._measuring = candidate
        if not self.rate.always and candidate not in self._rates:
            made = len(self._runs[candidate])
            self._run_all(candidate, made + self._repeats.measure)
            new = self._runs[candidate][made:]
            self._rates[candidate] = Rate(sum(verdict.same for verdict in new), len(new))

    def _confirm(self, smaller: Sequence[Candidate[T]]) -> None:
        """Run what is smaller than the result by an item again, where the answers so far leave more risk than wanted.

        Ends with the first failure: the fault comes and goes then.
        """
        if not self._repeats.doubts:
            return
        for candidate in smaller:
            self._run(candidate, 1, iter(()))
        passed = {candidate: count for candidate in smaller if (count := self._passes_without(candidate))}
        failures = 0 if self._doubted else self._failures  # where a part fails of what passed, passes say little
        confirming = Confirming.of(list(passed.values()), failures, len(self._problem.items), self._repeats)
        before = len(self.history)
        for candidate, more in zip(passed, confirming.passes, strict=True):
            if self._run(candidate, len(self._runs[candidate]) + more, iter(())).same:
                self.repeats += len(self.history) - before
                self._comes_and_goes(self._measuring)
                return
        self.repeats += len(self.history) - before
        if not any(_overall(self._runs[candidate]).same for candidate in smaller):
            self.confidence = 1.0 - confirming.risk

    def _passes_without(self, smaller: Candidate[T]) -> int:
        """Return how often the result passed without what it is larger by; 0 where it does not, or cannot be told.

        What holds more and lacks the same counts as well: it would have failed, if what it lacks were not needed.
        """
        if self._overall(smaller) is not CandidateOutcome.PASS:
            return 0
        left_out = self._measuring - smaller
        return sum(
            verdict.outcome is CandidateOutcome.PASS
            for candidate, runs in self._runs.items()
            if smaller <= candidate and left_out.isdisjoint(candidate)
            for verdict in runs
        )

    def _doubt(self, failing: Candidate[T]) -> None:
        """Ask again what passed although a part of it fails: by chance, or because it hides the fault each time.

        Ends when one fails now, or when so many passed again as would hardly if the fault came as often as they say.
        """
        self._doubted.update(
            dict.fromkeys(
                candidate
                for candidate in self._runs
                if failing < candidate and self._overall(candidate) is CandidateOutcome.PASS
            )
        )
        rate = self._failures / (self._failures + len(self._doubted))
        for candidate in self._doubted:
            if self._passed_again >= runs_needed(rate, self._repeats.risk):
                return
            self._run_all(candidate, len(self._runs[candidate]) + 1)
            self.repeats += 1
            if self._runs[candidate][-1].same:
                self._comes_and_goes(failing)
                return
            self._passed_again += 1

    def _comes_and_goes(self, result: Candidate[T]) -> None:
        """Take the fault for one that comes and goes: measure how often it fails, and ask as often as that needs."""
        self.rate = Rate(1, 2)  # not always; what is measured now counts
        self._measure(result)
        runs = self._runs[result]
        if self._rates[result].always:  # what it was seen to miss was smaller, or earlier
            self._rates[result] = Rate(sum(verdict.same for verdict in runs), len(runs) + 1)
        self.rate = self._rates[result]
        self._quick_runs = runs_needed(self.rate.estimate, QUICK_RISK, limit=self._repeats.limit)

    def _conclude(self, ask: Ask[T], verdicts: Sequence[OracleVerdict]) -> None:
        """State the confidence of a round of final answers: none of those that pass fails after all."""
        if self.rate.always or any(verdict.same for verdict in verdicts):
            return
        told = [c for c in ask.candidates if self._runs[c][-1].outcome is not CandidateOutcome.UNRESOLVED]
        missed = sum((1.0 - self._final_rate) ** self._final_runs[candidate] for candidate in told)
        self.confidence = max(0.0, 1.0 - self._final_risk - missed)

    def _run(self, candidate: Candidate[T], total: int, ahead: Iterator[OracleQuestion[T]]) -> OracleVerdict:
        """Make the runs that are missing to a total until one settles it, and return the verdict of all there are."""
        runs = self._runs.setdefault(candidate, [])
        while len(runs) < total and not (
            runs and (_overall(runs).same or runs[-1].outcome is CandidateOutcome.UNRESOLVED)
        ):
            self._use(candidate, ahead)
        return _overall(runs)

    def _run_all(self, candidate: Candidate[T], total: int) -> None:
        """Make the runs that are missing to a total, whatever they give."""
        runs = self._runs.setdefault(candidate, [])
        ahead = self._remaining([candidate], [total])
        while len(runs) < total:
            self._use(candidate, ahead)

    def _use(self, candidate: Candidate[T], ahead: Iterator[OracleQuestion[T]]) -> None:
        """Get the answer to the next run of a candidate, and record it."""
        question = self._question(candidate, len(self._runs[candidate]))
        if self._budget.checks is not None and len(self.history) >= self._budget.checks:
            raise StoppedError(SearchStop.CHECK_BUDGET)
        late = self._budget.seconds is not None and self.seconds >= self._budget.seconds
        if late and self._answers.known(question) is None:
            raise StoppedError(SearchStop.TIME_BUDGET)
        answer = self._answers.answer(question, ahead)
        if answer.error is not None:
            raise answer.error
        assert answer.verdict is not None
        self._record(candidate, question, answer.verdict, cached=answer.cached, seconds=answer.seconds)

    def _record(
        self,
        candidate: Candidate[T],
        question: OracleQuestion[T],
        verdict: OracleVerdict,
        *,
        cached: bool,
        seconds: float,
    ) -> None:
        self._runs[candidate].append(verdict)
        kept = self._smallest
        step = SearchStep(len(candidate), question.attempt, verdict.outcome, cached, seconds, len(kept))
        self.history.append(step)
        self.cache_hits += cached
        self._checks_left = max(0.0, self._checks_left - 1.0)
        if verdict.same:
            self._failures += 1
            self.confidence = None
            if self.best is None or self._problem.size(candidate) < self._problem.size(self.best):
                self.best, self._smallest = candidate, question.candidate
        known = self.others.get(verdict.signature)
        if verdict.outcome is CandidateOutcome.OTHER and (known is None or len(candidate) < len(known.candidate)):
            self.others[verdict.signature] = Interesting(question.candidate, verdict)
        if self._observe is not None:
            self._observe(self._progress(question, verdict, step, kept))

    def _progress(
        self, question: OracleQuestion[T], verdict: OracleVerdict, step: SearchStep, kept: tuple[T, ...]
    ) -> Progress[T]:
        mean = self._answers.fresh_seconds / self._answers.fresh if self._answers.fresh else None
        return Progress(
            candidate=question.candidate,
            verdict=verdict,
            step=step,
            kept=kept,
            checks=len(self.history),
            cache_hits=self.cache_hits,
            seconds=self.seconds,
            checks_left=self._checks_left,
            seconds_left=None if mean is None else mean * self._checks_left,
        )


def _overall(runs: Sequence[OracleVerdict]) -> OracleVerdict:
    """Return the verdict of several runs of one candidate: one failure is enough."""
    for wanted in (CandidateOutcome.SAME, CandidateOutcome.OTHER, CandidateOutcome.PASS):
        for verdict in runs:
            if verdict.outcome is wanted:
                return verdict
    return runs[-1]


def _premise_error(runs: Sequence[OracleVerdict]) -> UsageError:
    detail = next((f" ({verdict.detail})" for verdict in runs if verdict.detail), "")
    if all(verdict.outcome is CandidateOutcome.UNRESOLVED for verdict in runs):
        return UsageError(
            f"it is not clear whether the whole model fails after {len(runs)} runs{detail}",
            slug="premise-unresolved",
            cure="make the check decide on the whole model first",
        )
    return UsageError(
        f"the whole model does not fail in {len(runs)} runs{detail}; there is nothing to reduce",
        slug="premise-not-failing",
        cure="make sure that the whole model fails; if the fault comes and goes, allow more runs (--premise 20)",
    )
