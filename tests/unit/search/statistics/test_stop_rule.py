"""Numbers of runs: expected values follow from the formulas in the docstrings."""

import pytest

from tensortriage.search.statistics.stop_rule import runs_to_exclude


@pytest.mark.parametrize(
    ("rate", "confidence", "runs"),
    [
        (0.5, 0.95, 5),  # 0.5^5 = 0.031 <= 0.05 < 0.5^4
        (0.2, 0.95, 14),  # 0.8^14 = 0.044 <= 0.05 < 0.8^13 = 0.055
        (0.1, 0.9, 22),  # 0.9^22 = 0.098 <= 0.1 < 0.9^21 = 0.109
        (0.99, 0.5, 1),
    ],
)
def test_runs_to_exclude(rate, confidence, runs):
    assert runs_to_exclude(rate, confidence) == runs
    assert (1 - rate) ** runs <= 1 - confidence
    assert runs == 1 or (1 - rate) ** (runs - 1) > 1 - confidence
