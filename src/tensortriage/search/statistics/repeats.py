"""How often must a check be repeated when the fault comes and goes?

Seeing the fault once proves that a candidate fails; not seeing it proves nothing until it has been missed often enough.
A candidate that fails with rate p per run passes n runs in a row with chance (1 - p)^n. Passing is therefore the
expensive answer, and a search that only deletes is not hurt by a false one: it keeps too much. So few repeats are spent
while searching, and the number that the stated confidence needs only on the small result.
"""

import dataclasses
import enum
import math
import statistics
import sys
from collections.abc import Sequence

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass

CONFIDENCE = 0.95
"""Certainty of a rate estimated from a few runs: it may be half as high, or twice."""

NORMAL = statistics.NormalDist().inv_cdf(0.5 + CONFIDENCE / 2.0)
"""Standard deviations of the normal distribution within which `CONFIDENCE` of it lies."""

QUICK_RISK = 1.0 - CONFIDENCE
"""Chance of a false pass that a quick check may have."""

RARE_FAULT = 0.3
"""Rate of failure of a whole that is still to be seen when nothing fails at first: nine runs miss it with 4 %."""

RATES = 128
"""Number of failure rates tried to find the worst one: its risk is flat around it."""

MISSED = 0.01
"""Chance that a fault which comes and goes is missed when a step is tried after the search."""


class Until(enum.Enum):
    """When to stop; the value is the word on the command line."""

    SURE = "sure"
    """Enough is known."""
    GOOD = "good"
    """One has passed."""
    BAD = "bad"
    """One has failed."""


def parse_until(text: str, *, noun: str, slug: str) -> Until | int:
    """Return when to stop: one of its words, or after a number of the noun.

    Raises:
        UsageError: For any other text, with the slug.
    """
    if text.lower() in [one.value for one in Until]:
        return Until(text.lower())
    if text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0:
        return int(text)
    cure = f"give good, bad, sure, or a number of {noun} of at least 1"
    raise UsageError(f"--until {text} is not understood", slug=slug, cure=cure)


class RepeatStop(enum.Enum):
    """Why it stopped; the value is the word in files."""

    REACHED = "reached"
    MOST_RUNS = "most-runs"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


@frozen_dataclass
class Repeats:
    """Numbers of repetitions of a question.

    Attributes:
        premise: Runs of the whole before anything else. Only when they differ does the fault count as one that comes
            and goes.
        measure: Runs from which the rate of failure is estimated, once they differ.
        confidence: Chance wanted that every item of the result is needed, also when the fault comes and goes.
        limit: Most runs for one check. A result that would need more has less confidence, and reports it.
        confirms: Whether answers of a fault that seems steady are confirmed in the end; not where nothing is left to
            chance.
        seen: Failures in a row of candidates that are part of the whole; one more run of it is enough then.

    Raises:
        UsageError: For numbers that mean nothing (``search-repeats-invalid``).
    """

    premise: int = 3
    measure: int = 16
    confidence: float = 0.95
    limit: int = 60
    confirms: bool = True
    seen: int = 0

    @property
    def risk(self) -> float:
        """Chance that a result may have of holding an item that is not needed."""
        return 1.0 - self.confidence

    @property
    def doubts(self) -> bool:
        """Whether a fault that failed each time so far may be one that comes and goes."""
        return self.confirms and self.premise > 1

    @property
    def wholes(self) -> int:
        """Runs of the whole before anything else."""
        return 1 if self.seen else self.premise

    @property
    def passes(self) -> int:
        """Runs after which a whole that has never failed is given up."""
        if not self.seen:
            return max(self.premise, runs_needed(RARE_FAULT, QUICK_RISK)) if self.premise > 1 else 1
        return self.passes_after(self.seen)

    def passes_after(self, failures: int) -> int:
        """Return how many passes exclude that a fault failed so often in a row by chance, whatever its rate."""
        return next((n for n in range(1, self.limit) if unseen_risk(failures, n) <= self.risk), self.limit)

    def inside(self, rate: "Rate") -> "Repeats":
        """Return the rules for a part of a whole that failed at a rate."""
        return dataclasses.replace(self, seen=rate.runs) if rate.always and self.premise > 1 else self

    def __post_init__(self) -> None:
        if min(self.premise, self.measure, self.limit) < 1 or not 0.0 < self.confidence < 1.0:
            raise UsageError(
                f"cannot repeat checks like this: {self}",
                slug="search-repeats-invalid",
                cure="give at least one run and a confidence between 0 and 1",
            )


@frozen_dataclass
class Rate:
    """A failure rate.

    Attributes:
        failed: Runs that failed the same way.
        runs: All runs.
    """

    failed: int
    runs: int

    @property
    def always(self) -> bool:
        """Whether every run failed."""
        return self.failed == self.runs

    @property
    def estimate(self) -> float:
        """Share of failing runs."""
        return self.failed / self.runs

    def at_least(self, confidence: float) -> float:
        """Return the one-sided lower confidence bound of Clopper and Pearson (Biometrika 26:404, 1934).

        It is the rate at which ``failed`` or more failures in ``runs`` have the chance ``1 - confidence``.
        """
        low, high = 0.0, self.estimate
        for _ in range(60):
            middle = (low + high) / 2.0
            if _tail(self.failed, self.runs, middle) > 1.0 - confidence:
                high = middle
            else:
                low = middle
        return low

    def at_most(self, confidence: float) -> float:
        """Return the one-sided upper confidence bound."""
        return 1.0 - Rate(self.runs - self.failed, self.runs).at_least(confidence)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the two-sided interval: half of the remaining chance lies on either side."""
        side = (1.0 + confidence) / 2.0
        return self.at_least(side), self.at_most(side)


def _tail(failed: int, runs: int, rate: float) -> float:
    """Return the chance of ``failed`` or more failures in ``runs`` at a rate."""
    return math.fsum(math.comb(runs, k) * rate**k * (1.0 - rate) ** (runs - k) for k in range(failed, runs + 1))


def wilson(failed: int, runs: int) -> tuple[float, float]:
    """Return Wilson's score interval of a rate at `CONFIDENCE` (JASA 22:209, 1927); (0, 1) without runs."""
    if runs == 0:
        return 0.0, 1.0
    rate, spread = failed / runs, NORMAL**2 / runs
    middle = rate + spread / 2.0
    half = NORMAL * ((rate * (1.0 - rate) + spread / 4.0) / runs) ** 0.5
    low = 0.0 if failed == 0 else (middle - half) / (1.0 + spread)
    high = 1.0 if failed == runs else (middle + half) / (1.0 + spread)
    return max(0.0, low), min(1.0, high)


def runs_needed(rate: float, risk: float, *, limit: int = sys.maxsize) -> int:
    """Return how many runs without failure leave at most ``risk`` that a candidate fails with ``rate`` per run.

    Had it that rate, n runs would all pass with chance ``(1 - rate)^n``: the bound of Clopper and Pearson (Biometrika
    26:404, 1934) for no event in n.
    """
    if rate >= 1.0:
        return 1
    if rate <= 0.0:
        return limit
    return min(limit, max(1, math.ceil(math.log(risk) / math.log1p(-rate) - 1e-9)))


def unseen_risk(failures: int, passes: int) -> float:
    """Return the most that a fault which comes and goes can hide: so many failures in a row, then so many passes.

    At a rate p that chance is ``p^m (1 - p)^n``, largest at ``p = m / (m + n)``: a bound for any rate.
    """
    both = failures + passes
    return failures**failures * passes**passes / both**both if both else 1.0


def enough_of_both(failures: int, passes: int, risk: float) -> tuple[int, int]:
    """Return how many failures and passes, with those there are, leave no more risk that both come by chance.

    As few in all as do; of equally many, those with most failures.
    """
    for total in range(failures + passes, sys.maxsize):
        for right in range(passes, total - failures + 1):
            if unseen_risk(total - right, right) <= risk:
                return total - right, right
    raise AssertionError("the risk falls with every run")


def chosen_risk(failures: int, passes: int, items: int, free: int) -> float:
    """Return the largest chance that an unneeded item is in a result, given the answers so far.

    Each item has a record of its own: the answers, in order, that would lead the search to it. Of records with k passes
    in so many free answers there are no more than C(free, k - 1), one pass being the last, and of all no more than
    items. So the chance of any is at most that of as many as there can be, those of fewest passes first, at the worst
    rate.

    Args:
        failures: Failures in a row of candidates that hold all needed items.
        passes: Passes of the result without the item.
        items: How many the search chose among.
        free: Answers that the search itself was led by: neither those about the whole nor the last ones.
    """
    both, left = failures + passes, items
    records: list[tuple[int, int]] = []
    for k in range(passes, both):
        records.append((k, min(left, math.comb(free, max(k - 1, 0)))))
        left -= records[-1][1]
    rates = (step / RATES for step in range(1, RATES))
    return max(math.fsum(count * rate ** (both - k) * (1.0 - rate) ** k for k, count in records) for rate in rates)


@frozen_dataclass
class Confirming:
    """New runs that separate a steady fault from one that failed each time by chance, if the search has not decided.

    The search's own answers speak against chance as well, but it went where they led it; see `chosen_risk`. New runs do
    not depend on where the search went, and so only on the whole's runs.

    Attributes:
        passes: Runs of the result without each of its items, which has to pass in each.
        risk: Chance that an item is kept which is not needed, whatever the rate.
    """

    passes: tuple[int, ...]
    risk: float

    @classmethod
    def of(cls, passed: Sequence[int], failures: int, items: int, repeats: Repeats) -> "Confirming":
        """Return the fewest runs that leave no more risk than is needed.

        Args:
            passed: How often the result without an item has passed so far; by item.
            failures: Failures in a row so far, all of candidates that hold all needed items; 0 where passes are
                doubted.
            items: How many items the search chose among.
            repeats: The risk that is needed.
        """
        before = repeats.seen + repeats.wholes
        most = repeats.passes_after(before)

        def risk(passes: int) -> float:
            return chosen_risk(failures, passes, items, max(failures - before - 1, 0) + passes - 1) if failures else 1.0

        more = [next((n for n in range(most) if risk(made + n) <= repeats.risk), most) for made in passed]
        risks = [min(risk(made + n), unseen_risk(before, most)) for made, n in zip(passed, more, strict=True)]
        return cls(tuple(more), max(risks, default=0.0))


def attempts_for(rate: Rate, repeats: Repeats) -> int:
    """Return how many runs it takes to see a failure that comes at this rate; they end with the first that fails."""
    return 1 if rate.always else runs_needed(rate.at_least(CONFIDENCE), MISSED, limit=repeats.limit)


def attempts_to_verify(rate: Rate, repeats: Repeats) -> int:
    """Return how often a result is run at most until it fails again; a few runs that all failed prove little."""
    return runs_needed(rate.at_least(CONFIDENCE), MISSED, limit=repeats.limit) if repeats.premise > 1 else 1
