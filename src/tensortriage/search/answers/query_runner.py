"""The answers a search rests on: repeated where the fault comes and goes, counted, and never more than the budget.

A candidate fails as soon as one run of it failed the same way; it passes only after enough runs without. How many are
enough follows from the failure rate of the whole, and for the final answers from that of the result. Runs that helped
to choose the result are no independent evidence on it, so the final answers are always new runs.

A fault that failed in every run of the premise counts as steady during the search, although one of 70 % does so in a
third of all cases. So doubtful answers are repeated: a pass although a part of the candidate fails, at once; and in the
end a pass without an item of the result, unless so many candidates passed without that item that chance is excluded at
any rate. When one of these runs differs, the fault comes and goes, and the search continues as for one.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic

from tensortriage.errors import UsageError
from tensortriage.search.answers.search_record import Candidate, SearchRecord, overall
from tensortriage.search.dialogue import Ask, Care
from tensortriage.search.execution.executors import OracleQuestion
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, T
from tensortriage.search.statistics.repeats import QUICK_RISK, Confirming, Rate, Repeats, runs_needed


class QueryRunner(Generic[T]):
    """Runs a candidate as often as an answer needs.

    Args:
        record: The store of answers.
        repeats: Number of runs per candidate.

    Attributes:
        record: The store of answers.
        rate: How often the whole failed.
        confidence: Chance that the last final answers are all right; None while there are none.
        repeats: How many of the answers only confirmed others.
    """

    def __init__(self, record: SearchRecord[T], repeats: Repeats) -> None:
        self.record = record
        self._repeats = repeats
        self._rates: dict[Candidate[T], Rate] = {}
        self._measuring = record.problem.whole
        self._final_runs: dict[Candidate[T], int] = {}
        self._failures = repeats.seen
        self._passed_again = 0
        self._doubted: dict[Candidate[T], None] = {}
        self._quick_runs = 1
        self.rate = Rate(1, 1)
        self.confidence: float | None = None
        self.repeats = 0

    @property
    def false_pass(self) -> float:
        """Chance that a quick check overlooks a failure."""
        return 0.0 if self.rate.always else QUICK_RISK

    def measured(self, candidate: Candidate[T]) -> Rate:
        """Return how often a candidate fails: measured itself, else as the whole."""
        return self._rates.get(candidate, self.rate)

    def expect(self, candidate: Candidate[T]) -> OracleVerdict | None:
        """Return the verdict that asking will give, where that is known already."""
        verdict = self.record.known(candidate)
        return verdict if verdict is not None and (verdict.same or self.rate.always) else None

    def premise(self) -> None:
        """See whether the whole fails, and how often.

        Raises:
            UsageError: When it does not (``premise-not-failing``), or that is unresolved (``premise-unresolved``).
            StoppedError: When the budget ends before.
        """
        whole = self.record.problem.whole
        self._run_all(whole, self._repeats.wholes)
        runs = self.record.runs[whole]
        if all(verdict.outcome is CandidateOutcome.PASS for verdict in runs):
            self._run(whole, self._repeats.passes)
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
            ahead: Candidates that may follow, for idle processors.
            checks_left: Rough number of checks that the pass still expects.

        Raises:
            StoppedError: When the budget ends before.
        """
        self.record.checks_left = checks_left
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

    def _remaining(self, candidates: Sequence[Candidate[T]], totals: Sequence[int]) -> Iterator[OracleQuestion[T]]:
        """Yield the questions that these candidates need if none of them fails: one of each, then another of each."""
        starts = [len(self.record.runs.get(candidate, ())) for candidate in candidates]
        for attempt in range(max(totals, default=0)):
            for candidate, start, total in zip(candidates, starts, totals, strict=True):
                if start <= attempt < total:
                    yield self.record.question(candidate, attempt)

    def _first(self, candidates: Iterator[Candidate[T]]) -> Iterator[OracleQuestion[T]]:
        return (self.record.question(candidate, 0) for candidate in candidates)

    def _runs_wanted(self, candidate: Candidate[T], ask: Ask[T]) -> int:
        """Return how many runs settle a candidate, those made included, unless one of them fails the same way."""
        made = len(self.record.runs.get(candidate, ()))
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
            made = len(self.record.runs[candidate])
            self._run_all(candidate, made + self._repeats.measure)
            new = self.record.runs[candidate][made:]
            self._rates[candidate] = Rate(sum(verdict.same for verdict in new), len(new))

    def _confirm(self, smaller: Sequence[Candidate[T]]) -> None:
        """Run again the pieces one item smaller than the result, where the answers leave too much risk.

        Ends with the first failure: the fault comes and goes then.
        """
        if not self._repeats.doubts:
            return
        for candidate in smaller:
            self._run(candidate, 1)
        passed = {candidate: count for candidate in smaller if (count := self._passes_without(candidate))}
        failures = 0 if self._doubted else self._failures  # where a part fails of what passed, passes say little
        confirming = Confirming.of(list(passed.values()), failures, len(self.record.problem.items), self._repeats)
        before = len(self.record.history)
        for candidate, more in zip(passed, confirming.passes, strict=True):
            if self._run(candidate, len(self.record.runs[candidate]) + more).same:
                self.repeats += len(self.record.history) - before
                self._comes_and_goes(self._measuring)
                return
        self.repeats += len(self.record.history) - before
        if not any(overall(self.record.runs[candidate]).same for candidate in smaller):
            self.confidence = 1.0 - confirming.risk

    def _passes_without(self, smaller: Candidate[T]) -> int:
        """Return how often the smaller piece passed; 0 if it did not, or if unknown.

        A larger candidate that lacks the same counts as well: it would have failed, if the missing items were not
        needed.
        """
        if not self.record.passed(smaller):
            return 0
        left_out = self._measuring - smaller
        return sum(
            verdict.outcome is CandidateOutcome.PASS
            for candidate, runs in self.record.runs.items()
            if smaller <= candidate and left_out.isdisjoint(candidate)
            for verdict in runs
        )

    def _doubt(self, failing: Candidate[T]) -> None:
        """Repeat a pass that contradicts the failure of a part: by chance, or because it hides the fault each time.

        Ends when one fails now, or when so many passed again that the fault's rate makes that unlikely.
        """
        self._doubted.update(
            dict.fromkeys(
                candidate for candidate in self.record.runs if failing < candidate and self.record.passed(candidate)
            )
        )
        rate = self._failures / (self._failures + len(self._doubted))
        for candidate in self._doubted:
            if self._passed_again >= runs_needed(rate, self._repeats.risk):
                return
            self._run_all(candidate, len(self.record.runs[candidate]) + 1)
            self.repeats += 1
            if self.record.runs[candidate][-1].same:
                self._comes_and_goes(failing)
                return
            self._passed_again += 1

    def _comes_and_goes(self, result: Candidate[T]) -> None:
        """Take the fault for one that comes and goes: measure how often it fails, and ask as often as that needs."""
        self.rate = Rate(1, 2)  # not always; what is measured now counts
        self._measure(result)
        runs = self.record.runs[result]
        if self._rates[result].always:  # what it was seen to miss was smaller, or earlier
            self._rates[result] = Rate(sum(verdict.same for verdict in runs), len(runs) + 1)
        self.rate = self._rates[result]
        self._quick_runs = runs_needed(self.rate.estimate, QUICK_RISK, limit=self._repeats.limit)

    def _conclude(self, ask: Ask[T], verdicts: Sequence[OracleVerdict]) -> None:
        """State the confidence of a round of final answers: none of those that pass fails after all."""
        if self.rate.always or any(verdict.same for verdict in verdicts):
            return
        resolved = [c for c in ask.candidates if self.record.runs[c][-1].outcome is not CandidateOutcome.UNRESOLVED]
        missed = sum((1.0 - self._final_rate) ** self._final_runs[candidate] for candidate in resolved)
        self.confidence = max(0.0, 1.0 - self._final_risk - missed)

    def _run(self, candidate: Candidate[T], total: int, ahead: Iterable[OracleQuestion[T]] = ()) -> OracleVerdict:
        """Make the runs that are missing to a total until one settles it, and return the verdict of all there are."""
        runs = self.record.runs.setdefault(candidate, [])
        while len(runs) < total and not (
            runs and (overall(runs).same or runs[-1].outcome is CandidateOutcome.UNRESOLVED)
        ):
            self._use(candidate, ahead)
        return overall(runs)

    def _run_all(self, candidate: Candidate[T], total: int) -> None:
        """Make the runs that are missing to a total, whatever they give."""
        ahead = self._remaining([candidate], [total])
        while len(self.record.runs.get(candidate, ())) < total:
            self._use(candidate, ahead)

    def _use(self, candidate: Candidate[T], ahead: Iterable[OracleQuestion[T]]) -> None:
        if self.record.run(candidate, ahead).same:
            self._failures += 1
            self.confidence = None


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
