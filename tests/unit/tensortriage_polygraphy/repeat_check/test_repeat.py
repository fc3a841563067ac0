import math

import pytest

from tensortriage.errors import UsageError
from tensortriage.runs.commands.failure_rules import Ruling
from tensortriage.search.statistics.repeats import RepeatStop, Until, wilson
from tensortriage_polygraphy.repeat_check.repeat import Repeated, RepeatGoal, repeat

GOOD, BAD, SILENT = Ruling(False, "", "ok"), Ruling(True, "exit code 1", "no"), Ruling(None, "timeout", "slow")


def runs(*rulings):
    """A check that gives these rulings, over and over."""
    return lambda number: rulings[number % len(rulings)]


# Expected values: statsmodels.stats.proportion.proportion_confint(..., method="wilson"), to six digits.
@pytest.mark.parametrize(
    ("failed", "made", "low", "high"),
    [(0, 10, 0.0, 0.277533), (5, 10, 0.236593, 0.763407), (1, 20, 0.008881, 0.236131), (10, 10, 0.722467, 1.0)],
)
def test_wilson(failed, made, low, high):
    assert wilson(failed, made) == pytest.approx((low, high), abs=1e-6)


def test_no_run_tells_nothing():
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("goal", "rulings", "made", "stop"),
    [
        (RepeatGoal(until=Until.BAD), (GOOD, GOOD, BAD), 3, RepeatStop.REACHED),
        (RepeatGoal(until=Until.GOOD), (BAD, SILENT, GOOD), 3, RepeatStop.REACHED),
        (RepeatGoal(until=Until.BAD, most_runs=7), (GOOD,), 7, RepeatStop.MOST_RUNS),
        (RepeatGoal(until=4), (GOOD, BAD), 4, RepeatStop.REACHED),
        (RepeatGoal(seconds=0.0), (GOOD,), 0, RepeatStop.BUDGET),
    ],
)
def test_when_it_stops(goal, rulings, made, stop):
    result = repeat(runs(*rulings), goal)
    assert result.passed + result.failed + result.unresolved == made
    assert result.stop is stop


def test_it_goes_on_until_the_rate_is_known():
    # Wilson's interval of 0 of n is z^2 / (n + z^2) wide: at most 0.2 from n = 4 z^2 = 15.4 on.
    assert repeat(runs(GOOD), RepeatGoal()).passed == math.ceil(4 * 1.959964**2)
    half = repeat(runs(GOOD, BAD), RepeatGoal())
    assert half.high - half.low <= 0.2
    low, high = wilson(half.failed, half.passed + half.failed - 1)
    assert high - low > 0.2


def test_what_is_summed_up():
    result = repeat(runs(GOOD, BAD, SILENT, BAD), RepeatGoal(until=8))
    assert (result.passed, result.failed, result.unresolved, result.first_failure) == (2, 4, 2, 1)
    assert result.rate == pytest.approx(4 / 6)
    assert result.signatures == {"exit code 1": 4}


@pytest.mark.parametrize(
    ("rulings", "code"), [((GOOD,), 0), ((GOOD, BAD), 1), ((GOOD, SILENT), 4), ((SILENT, BAD), 1), ((SILENT,), 4)]
)
def test_the_exit_code_is_true(rulings, code):
    assert repeat(runs(*rulings), RepeatGoal(until=6)).exit_code == code


def test_ctrl_c_keeps_what_there_is():
    def run(number):
        if number == 3:
            raise KeyboardInterrupt
        return BAD

    result = repeat(run, RepeatGoal())
    assert isinstance(result, Repeated)
    assert (result.failed, result.stop) == (3, RepeatStop.INTERRUPTED)


@pytest.mark.parametrize("goal", [RepeatGoal(most_runs=0), RepeatGoal(width=0.0), RepeatGoal(width=1.0)])
def test_goals_that_mean_nothing(goal):
    with pytest.raises(UsageError) as caught:
        repeat(runs(GOOD), goal)
    assert caught.value.slug == "repeat-goal-invalid"
