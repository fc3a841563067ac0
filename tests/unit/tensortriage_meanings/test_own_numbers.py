"""An op whose result is off by a factor of its own. The other side's numbers are the op's, multiplied in numpy."""

import numpy as np
import pytest

from meant_otherwise import model, run
from tensortriage_meanings.own_numbers import factor
from tensortriage_meanings.search import Unexplained, explained

RNG = np.random.default_rng(2)
POOL = "g (float[1,2,9,9] x) => (float[1,2,7,7] y) { [op] y = AveragePool<kernel_shape=[3,3]>(x) }"
SUM = "g (float[2,4,5] x) => (float[2,4] y) { [op] y = ReduceMean<axes=[2], keepdims=0>(x) }"
HEADS = "g (float[3,4,48] x) => (float[3,4,4] y) { t = Transpose<perm=[0,2,1]>(x) [op] y = MatMul(x, t) }"
SCALED = "g (float[3,8] x) => (float[3,8] y) <float c = {0.3}> { [op] y = Mul(x, c) }"


def told(text, times, noise=0.0):
    """Return what is said of an op whose result is multiplied by a number, and given noise of so much."""
    one = model(text)
    x = RNG.standard_normal(one.inputs[0].shape).astype(np.float32)
    right = run(one, x=x)
    theirs = (right * np.float32(times) * (1 + noise * RNG.standard_normal(right.shape))).astype(np.float32)
    limit = max(1e-6, 4 * noise) * np.abs(theirs).max()
    subject = Unexplained(
        one, lambda other: {"y": run(other, x=x)}, {"y": theirs},
        lambda _, made: {"y": limit} if np.abs(made["y"] - theirs).max() <= limit else None,
    )  # fmt: skip
    found = explained(subject, ())
    return "" if found is None else found.ways["op"].words


@pytest.mark.parametrize(
    ("text", "times", "words"),
    [
        (POOL, 1 / 9, "divided by 9, the number of elements of its window (3 x 3)"),
        (SUM, 5.0, "multiplied by 5, the number of elements that it reduces to one"),
        (HEADS, 48**-0.5, "divided by the root of 48, the number of products"),
        (SCALED, 1 / 0.3, "divided by 0.3, its operand 'c'"),
        (POOL, 127.5, "multiplied by 127.5, half of the largest uint8 number"),
    ],
)
def test_a_number_of_the_op_is_told(text, times, words):
    assert words in told(text, times)


@pytest.mark.parametrize("times", [1.03, 0.613, -1.0, 0.5, 2.0, 1.0])
def test_other_factors_are_none(times):
    assert told(POOL, times) == ""


def test_a_factor_that_noise_hides_is_none():
    assert told(POOL, 1 / 9, noise=1e-5)
    assert told(POOL, 1 / 9, noise=1e-2) == ""


def test_the_uncertainty_is_four_standard_errors_of_the_slope():
    x, e = RNG.standard_normal((2, 4096))
    y = 3.0 * x + 1e-4 * e
    # Of a line through 0: sigma / sqrt(sum of squares), relative to the slope; both sides to 5 % by 4096 numbers.
    assert factor(x, y) == (pytest.approx(3.0, abs=1e-5), pytest.approx(4 * 1e-4 / 64 / 3, rel=0.05))
    assert factor(x, x + e) is None
    assert factor(x[:4], 3 * x[:4]) is None
    assert factor(None, x) is None
