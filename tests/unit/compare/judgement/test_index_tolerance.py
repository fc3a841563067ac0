"""How far values moved along their rows; the first four cases are those of Polygraphy's documentation."""

import numpy as np
import pytest

from tensortriage.compare.judgement.index_tolerance import IndexTolerance
from tensortriage.compare.metrics.tensor_metrics import measure


@pytest.mark.parametrize(
    ("reference", "target", "allowed", "within"),
    [
        ([0, 1, 2], [1, 0, 2], 0, False),
        ([0, 1, 2], [1, 0, 2], 1, True),
        ([0, 1, 2], [1, 2, 0], 1, False),
        ([0, 1, 2], [1, 2, 0], 2, True),
        ([0, 1, 2, 3], [0, 1, 2, 9], 0, False),
        ([0, 1, 2, 3], [0, 1, 2, 9], 1, True),  # 3 may have been pushed out by 9
        ([0, 1, 2, 3], [9, 0, 1, 2], 1, True),
        ([9, 0, 1, 2], [0, 1, 2, 9], 1, False),  # Polygraphy passes the last place without a look, but not this first
        ([3, 1, 2, 0], [0, 1, 2, 3], 1, False),
        ([7, 7, 1], [7, 1, 7], 1, True),  # the first 7 stays, the second moves by one
        ([[0, 1], [2, 3]], [[0, 1], [3, 2]], 0, False),
        ([], [], 0, True),
    ],
)
def test_places(reference: list[int], target: list[int], allowed: int, within: bool) -> None:
    ours, theirs = np.array(reference, np.int64), np.array(target, np.int64)
    judgement = IndexTolerance(allowed).judge("x", measure(ours, theirs), ours, theirs)
    assert judgement.within is within
    assert (judgement.ratio > 1) is not within


def test_a_tolerance_per_output() -> None:
    ours, theirs = np.array([0, 1]), np.array([1, 0])
    tolerance = IndexTolerance({"x": 1, "": 0})
    assert tolerance.judge("x", measure(ours, theirs), ours, theirs).within
    assert not tolerance.judge("y", measure(ours, theirs), ours, theirs).within
