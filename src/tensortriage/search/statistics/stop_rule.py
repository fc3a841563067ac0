"""When to stop repeating something that may come out either way, and what is known of its rate by then."""

import enum
import math
import statistics

CONFIDENCE = 0.95


class Until(enum.Enum):
    """When to stop; the value is the word on the command line."""

    SURE = "sure"
    """Enough is known."""
    GOOD = "good"
    """One has passed."""
    BAD = "bad"
    """One has failed."""
    COUNT = "count"
    """A number of times."""


class RepeatStop(enum.Enum):
    """Why it stopped; the value is the word in files."""

    REACHED = "reached"
    MOST_RUNS = "most-runs"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


def wilson(failed: int, runs: int) -> tuple[float, float]:
    """Return Wilson's score interval of a rate at `CONFIDENCE` (JASA 22:209, 1927); (0, 1) without runs."""
    if runs == 0:
        return 0.0, 1.0
    z = statistics.NormalDist().inv_cdf(0.5 + CONFIDENCE / 2.0)
    rate, spread = failed / runs, z * z / runs
    middle = rate + spread / 2.0
    half = z * ((rate * (1.0 - rate) + spread / 4.0) / runs) ** 0.5
    low = 0.0 if failed == 0 else (middle - half) / (1.0 + spread)
    high = 1.0 if failed == runs else (middle + half) / (1.0 + spread)
    return max(0.0, low), min(1.0, high)


def runs_to_exclude(rate: float, confidence: float = CONFIDENCE) -> int:
    """Return after how many runs of one kind the other kind has at most a rate, with confidence.

    Had it that rate, n runs would all be of the first kind with chance ``(1 - rate)^n``: the bound of Clopper and
    Pearson (Biometrika 26:404, 1934) for no event in n. Runs that are all alike end at a number known beforehand, so
    looking after every one costs no confidence.
    """
    return max(1, math.ceil(math.log(1.0 - confidence) / math.log1p(-rate) - 1e-9))
