"""Properties of operands that set wrong elements apart; results of kernels with a forgotten case, by numpy."""

import numpy as np
import pytest

from tensortriage.compare.patterns.operand_conditions import where_wrong

RNG = np.random.default_rng(5)
X = RNG.standard_normal((6, 9)).astype(np.float32)
AT = np.tile([[0, -1, 2, -3], [3, 1, -2, 0], [2, 2, -1, 1], [0, 1, 3, -4], [1, -1, 0, 2]], (2, 1))  # -4 is 0
DATA = RNG.standard_normal((10, 4)).astype(np.float32)
MASK = RNG.random((6, 9)) < 0.3
ROWS = np.tile(np.arange(60)[:, None], 3)


def told(operands, right, made, floor=1e-7):
    found = where_wrong(operands, right, made, floor=floor)
    return "" if found is None else found.evidence["effect"]


@pytest.mark.parametrize(
    ("operands", "right", "made", "effect"),
    [
        ({"at": AT}, np.take_along_axis(DATA, AT, 1), np.take_along_axis(DATA, np.maximum(AT, 0), 1),
         "goes wrong where 'at' is negative"),
        ({"x": X}, np.where(X < 0, 0.3 * X, X), np.where(X < 0, 0.2 * X, X), "goes wrong where 'x' is negative"),
        ({"x": X, "m": MASK}, np.where(MASK, X, 2 * X), np.where(MASK, X + 1, 2 * X), "goes wrong where 'm' is true"),
        ({"x": X}, np.minimum(X, 1), np.minimum(X, 1.5), f"goes wrong where 'x' is above {X[X <= 1].max():.4g}"),
        ({"x": X * MASK}, X * MASK + 1, np.where(MASK, X + 1, np.nan), "goes wrong where 'x' is 0"),
        ({"i": np.arange(60) - 11}, ROWS, np.maximum(ROWS, 11), "goes wrong where 'i' is negative"),
    ],
    ids=["gather", "prelu", "where", "clip", "nan", "rows"],
)  # fmt: skip
def test_the_case_that_is_wrong_is_named(operands, right, made, effect):
    assert told(operands, right, made) == effect


def test_noise_a_whole_result_and_few_elements_say_nothing():
    assert told({"x": X}, X, X * np.float32(1.3)) == ""  # all are wrong
    assert told({"x": X}, X, np.where(RNG.random(X.shape) < 0.3, X + 1, X)) == ""
    assert told({"x": X[0, :4]}, X[0, :4], np.where(X[0, :4] == X[0, :4].min(), 9, X[0, :4])) == ""  # 1 of 4
    assert told({"x": X}, X, (X * (1 + 1e-7 * np.sign(X))).astype(np.float32)) == ""  # within 10 floors
    assert told({"x": X.T.copy()}, X, np.where(X < 0, 0, X)) == ""  # of other axes
