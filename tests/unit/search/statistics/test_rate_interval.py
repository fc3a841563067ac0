"""The interval of Clopper and Pearson for a share."""

import pytest

from tensortriage.search.statistics.repeats import Rate


@pytest.mark.parametrize(
    ("failed", "runs", "low", "high"),
    [
        # Closed forms: 0 of n ends at 1 - (a/2)^(1/n), n of n begins at (a/2)^(1/n), with a = 0.05.
        (0, 5, 0.0, 1 - 0.025 ** (1 / 5)),
        (5, 5, 0.025 ** (1 / 5), 1.0),
        (1, 1, 0.025, 1.0),
        # Agresti and Coull (The American Statistician 52:119, 1998), table of exact intervals: 5 of 10.
        (5, 10, 0.187, 0.813),
    ],
)
def test_known_intervals(failed, runs, low, high):
    assert Rate(failed, runs).interval(0.95) == pytest.approx((low, high), abs=5e-4)


def test_more_confidence_is_wider():
    inner, outer = Rate(3, 9).interval(0.8), Rate(3, 9).interval(0.99)
    assert outer[0] < inner[0] < 3 / 9 < inner[1] < outer[1]
