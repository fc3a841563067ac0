"""What constant operands become; expected values are those of numpy on the weights themselves."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.operands import OPERANDS

X = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)


def test_an_epsilon_under_a_root():
    one = model("g (float[2,3] x) => (float[2,3] y) <float e = {0.00001}> { q = Mul(x, x) s = Add(q, e) y = Sqrt(s) }")
    assert run(meant(one, OPERANDS, "were 0.001"), x=X) == pytest.approx(np.sqrt(X * X + 1e-3), rel=1e-5)


def test_a_kernel_that_runs_the_other_way():
    one = model("g (float[1,1,4] x) => (float[1,1,3] y) <float[1,1,2] w = {1, 2}> { y = Conv(x, w) }")
    x = np.array([[[1, 10, 100, 1000]]], np.float32)
    assert run(one, x=x).ravel().tolist() == [21, 210, 2100]
    assert run(meant(one, OPERANDS, "flipped"), x=x).ravel().tolist() == [12, 120, 1200]


def test_pads_whose_axes_are_exchanged():
    one = model("g (float[1,1,2,2] x) => (float[1,1,n,m] y) <int64[8] p = {0,0,1,0,0,0,0,2}> { y = Pad(x, p) }")
    x = np.ones((1, 1, 2, 2), np.float32)
    assert run(one, x=x).shape == (1, 1, 3, 4)
    assert run(meant(one, OPERANDS, "height and width"), x=x).shape == (1, 1, 4, 3)


FOLDED = """g (float[1,2,1] x) => (float[1,2,1] y)
<float[2,2,1] w = {1,0,0,1}, float[2] b = {5,7}, float[2] g = {2,3}, float[2] h = {1,-1}, float[2] m = {10,20},
 float[2] v = {4,16}> { c = Conv(x, w, b) y = BatchNormalization<epsilon=0.0>(c, g, h, m, v) }"""


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("its mean were left out", lambda c, b: c * [1, 0.75] + [1, -1]),
        ("its scale were left out", lambda c, b: (c - [10, 20]) * [0.5, 0.25] + [1, -1]),
        ("its shift were left out", lambda c, b: (c - [10, 20]) * [1, 0.75]),
        ("by the variance, not", lambda c, b: (c - [10, 20]) * [0.5, 3 / 16] + [1, -1]),
        ("without the bias before it", lambda c, b: (c - b - [10, 20]) * [1, 0.75] + [1, -1]),
        ("added unscaled", lambda c, b: (c - b - [10, 20]) * [1, 0.75] + [1, -1] + b),
    ],
)
def test_a_normalization_that_is_folded_wrongly(words, right):
    """The factors are 2 / sqrt(4) and 3 / sqrt(16)."""
    x, bias = np.array([3.0, 4.0]), np.array([5.0, 7.0])
    made = run(meant(model(FOLDED), OPERANDS, words), x=x.reshape(1, 2, 1).astype(np.float32))
    assert made.ravel() == pytest.approx(right(x + bias, bias), rel=1e-5)


def test_subnormal_numbers_of_a_weight_that_are_0():
    # The smallest normal number of binary16 is 2^-14 = 6.1e-5 (IEEE 754-2008, table 3.5).
    weights = "3e-5, 6.2e-5, -6e-5, 1, 0, 2, 3, -4"
    one = model(f"g (float[8] x) => (float[8] y) <float[8] w = {{{weights}}}> {{ y = Mul(x, w) }}")
    found = run(meant(one, OPERANDS, "subnormal in fp16"), x=np.ones(8, np.float32))
    assert found == pytest.approx(np.array([0, 6.2e-5, 0, 1, 0, 2, 3, -4], np.float32))
