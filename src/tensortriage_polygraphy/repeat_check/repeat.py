"""Repeat: how often does a check fail, and when is that known well enough?

The rate of failure comes with Wilson's score interval (JASA 22:209, 1927), which is right for few runs and for rates
near 0 and 1, where failures that come and go live. Runs go on until the interval is as narrow as requested; looking
after every run makes the true coverage a little less than the nominal one, so the least number of runs is not small.
"""

import dataclasses
import functools
import time
from collections import Counter
from collections.abc import Callable, Mapping

from tensortriage.sdk import CONFIDENCE, RepeatStop, Ruling, Until, UsageError, option, parse_until, request, wilson

_LEAST_REPEATS = 5
"""Repeats before the width of the interval may end them: with fewer it means little."""

REPEAT_FORMAT = "tensortriage.repeat/1"


@request
class RepeatGoal:
    """The goal of repeating."""

    # fmt: off
    until: Until | int = option(
        "--until", "WHEN", "When to stop. good or bad: at the first run that passes or fails; N: after N runs; sure: "
        "when the failure rate is known.", default=Until.SURE, group="Stopping",
        read=functools.partial(parse_until, noun="runs", slug="repeat-until-unknown"))
    width: float = option(
        "--width", "SHARE", "Width of the 95 % interval at which the failure rate counts as known.",
        default=0.2, above=0, below=1)
    most_runs: int = option(
        "--max-runs", "N", "Largest number of runs, unless --until sets the number.", default=1000, least=1)
    seconds: float | None = option(
        "--budget", "SECONDS", "Time after which no new run begins.", default=None, least=0)
    # fmt: on

    def reached(self, passed: int, failed: int, made: int) -> bool:
        """Whether enough runs have been made."""
        if isinstance(self.until, int):
            return made >= self.until
        if self.until is not Until.SURE:
            return (passed if self.until is Until.GOOD else failed) > 0
        low, high = wilson(failed, passed + failed)
        return passed + failed >= _LEAST_REPEATS and high - low <= self.width


@dataclasses.dataclass(frozen=True, slots=True)
class Repeated:
    """The results of the runs.

    Attributes:
        passed: Runs that passed.
        failed: Runs that failed.
        unresolved: Runs that were unresolved (out of time); not part of the rate.
        rate: Share of failing runs; None when all are unresolved.
        low: Lower end of the confidence interval of the rate.
        high: Upper end.
        confidence: Nominal coverage of the interval.
        signatures: Number of failed runs by the way in which they failed.
        first_failure: Number of the first run that failed, from 0; None when none did.
        stop: Why it stopped.
        seconds: Wall-clock time.
    """

    passed: int
    failed: int
    unresolved: int
    rate: float | None
    low: float
    high: float
    confidence: float
    signatures: Mapping[str, int]
    first_failure: int | None
    stop: RepeatStop
    seconds: float
    format: str = REPEAT_FORMAT

    @property
    def exit_code(self) -> int:
        """0 when every run passed, 1 when one failed, 4 when runs were unresolved and none failed."""
        if self.failed:
            return 1
        return 0 if self.passed and not self.unresolved else 4


def repeat(
    run: Callable[[int], Ruling], goal: RepeatGoal, *, observe: Callable[[int, Ruling], None] | None = None
) -> Repeated:
    """Run a check repeatedly; Ctrl-C ends it with the results so far.

    Args:
        run: Makes one run, given its number from 0, and judges it.
        goal: When to stop.
        observe: Receives every run.

    Raises:
        UsageError: For a goal that cannot be reached (``repeat-goal-invalid``), or a check that cannot be started.
    """
    if goal.most_runs < 1 or not 0.0 < goal.width < 1.0:
        raise UsageError(
            f"cannot repeat with at most {goal.most_runs} runs and width {goal.width:g}",
            slug="repeat-goal-invalid",
            cure="give at least one run and a width between 0 and 1",
        )
    started, rulings = time.monotonic(), list[Ruling]()
    stop = RepeatStop.REACHED
    try:
        while not goal.reached(_count(rulings, False), _count(rulings, True), len(rulings)):
            if len(rulings) >= goal.most_runs and not isinstance(goal.until, int):
                stop = RepeatStop.MOST_RUNS
                break
            if goal.seconds is not None and time.monotonic() - started >= goal.seconds:
                stop = RepeatStop.BUDGET
                break
            rulings.append(run(len(rulings)))
            if observe is not None:
                observe(len(rulings) - 1, rulings[-1])
    except KeyboardInterrupt:
        if not rulings:
            raise
        stop = RepeatStop.INTERRUPTED
    return _summary(rulings, stop, time.monotonic() - started)


def _summary(rulings: list[Ruling], stop: RepeatStop, seconds: float) -> Repeated:
    passed, failed = _count(rulings, False), _count(rulings, True)
    low, high = wilson(failed, passed + failed)
    return Repeated(
        passed=passed,
        failed=failed,
        unresolved=len(rulings) - passed - failed,
        rate=failed / (passed + failed) if passed + failed else None,
        low=low,
        high=high,
        confidence=CONFIDENCE,
        signatures=dict(Counter(ruling.signature for ruling in rulings if ruling.failed)),
        first_failure=next((number for number, ruling in enumerate(rulings) if ruling.failed), None),
        stop=stop,
        seconds=seconds,
    )


def _count(rulings: list[Ruling], failed: bool) -> int:
    return sum(ruling.failed is failed for ruling in rulings)
