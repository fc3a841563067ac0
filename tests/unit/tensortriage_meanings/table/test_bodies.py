"""Do bodies compute what their words say? Expected values come from numpy, or from the formula next to the case."""

import math

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.bodies import BODIES

WHOLE = np.array([-7, -6, -1, 0, 1, 5, 8], np.int64)
TIES = np.array([-2.5, -1.5, -0.5, 0.5, 1.2, 1.5, 2.5], np.float32)
X = np.linspace(-3, 3, 13, dtype=np.float32)
INF = np.float32(np.inf)
ROWS = np.array([[0.5, -INF, 1.0], [-INF, -INF, -INF]], np.float32)


def unary(op, kind="float", made="float", settings=""):
    return f"g ({kind}[n] x) => ({made}[n] y) {{ y = {op}{settings}(x) }}"


def erf(x):
    return np.vectorize(math.erf)(x.astype(np.float64))


def away(x):
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


DIVISION = "g (int64[n] x) => (int64[n] y) { c = Constant<value_int=3>() y = Div(x, c) }"
ONE_BEHIND = "one = Constant<value_float=1.0>() f = Add(e, one)"
CASES = [
    ("division down", DIVISION, "rounded down", WHOLE, WHOLE // 3),
    ("ties up", unary("Round"), "rounded up", TIES, np.floor(TIES + 0.5)),
    ("ties away", unary("Round"), "away from zero", TIES, away(TIES)),
    ("cast rounds", unary("Cast", made="int64", settings="<to=7>"), "nearest whole one, not", TIES, np.rint(TIES)),
    ("cast down", unary("Cast", made="int64", settings="<to=7>"), "rounded down", TIES, np.floor(TIES)),
    ("cast away", unary("Cast", made="int64", settings="<to=7>"), "ties away", TIES, away(TIES)),
    ("floor cuts off", unary("Floor"), "cut off", TIES, np.trunc(TIES)),
    ("ceil cuts off", unary("Ceil"), "cut off", TIES, np.trunc(TIES)),
    ("ReLU6", unary("Relu"), "ended at 6", X * 4, np.clip(X * 4, 0, 6)),
    ("hard swish", unary("HardSwish"), "0.2", X, X * np.clip(0.2 * X + 0.5, 0, 1)),
    ("in 32 bits", unary("Abs", "int64", "int64"), "32 bits", WHOLE - 2**32, np.abs(WHOLE)),
    ("in float32", unary("Neg", "int64", "int64"), "32 bits", WHOLE + 2**32, -WHOLE),
    (
        "masked rows are 0", "g (float[2,3] x) => (float[2,3] y) { y = Softmax(x) }", "gave 0", ROWS,
        np.array([[1, 0, math.exp(0.5)], [0, 0, 0]]) / np.array([[1 + math.exp(0.5)], [1]]),
    ),
    (
        "masked rows are uniform", "g (float[2,3] x) => (float[2,3] y) { y = Softmax(x) }", "uniform", ROWS,
        np.array([[1, 0, math.exp(0.5)], [1, 1, 1]]) / np.array([[1 + math.exp(0.5)], [3]]),
    ),
    (
        "remainder of the divisor's sign", "g (float[n] x) => (float[n] y) { c = Constant<value_float=2.0>() "
        "y = Mod<fmod=1>(x, c) }", "sign of the divisor", X, np.mod(X, 2),
    ),
    (
        "division by 0", "g (float[n] x) => (float[n] y) { y = Div(x, x) }", "gave 0", X, (X != 0).astype(np.float32)
    ),
    (  # tanh(0.79788456 (x + 0.044715 x^3)) with x = sqrt(2) z
        "tanh form of GELU", f"g (float[n] x) => (float[n] f) {{ e = Erf(x) {ONE_BEHIND} }}", "tanh approximation", X,
        1 + np.tanh(np.sqrt(2 / np.pi) * (math.sqrt(2) * X + 0.044715 * (math.sqrt(2) * X) ** 3)),
    ),
    (  # of the tanh form's own argument the Erf form of the same x
        "exact form of GELU", f"g (float[n] x) => (float[n] f) {{ e = Tanh(x) {ONE_BEHIND} }}", "exact one",
        (np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)).astype(np.float32), 1 + erf(X / math.sqrt(2)),
    ),
    (
        "sigmoid form of GELU", f"g (float[n] x) => (float[n] f) {{ e = Erf(x) {ONE_BEHIND} }}", "1.702", X,
        2 / (1 + np.exp(-1.702 * math.sqrt(2) * X)),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words", "given", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_a_body_computes_what_its_words_say(text, words, given, expected):
    assert run(meant(model(text), BODIES, words), x=given) == pytest.approx(np.asarray(expected), rel=2e-6, abs=2e-6)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("opset", [11, 13])
def test_softmax_of_the_other_opset(opset):
    x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    one = model("g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }", opset=opset)
    alone, flat = softmax(x, 1), softmax(x.reshape(2, 12), 1).reshape(x.shape)
    assert run(one, x=x) == pytest.approx(flat if opset < 13 else alone, rel=1e-5)
    assert run(meant(one, BODIES, "opset 13"), x=x) == pytest.approx(alone if opset < 13 else flat, rel=1e-5)


def test_a_normalization_by_the_statistics_of_its_batch():
    x = np.random.default_rng(2).standard_normal((3, 2, 4)).astype(np.float32)
    one = model(
        "g (float[3,2,4] x) => (float[3,2,4] y) <float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] m = {0.5, 0.5}, "
        "float[2] v = {1, 1}> { y = BatchNormalization(x, s, b, m, v) }"
    )
    mean, var = (f(x, axis=(0, 2), keepdims=True) for f in (np.mean, np.var))
    scale, shift = np.reshape([1, 2], (1, 2, 1)), np.reshape([0, 1], (1, 2, 1))
    made = run(meant(one, BODIES, "own batch"), x=x)
    assert made == pytest.approx((x - mean) / np.sqrt(var + 1e-5) * scale + shift, rel=1e-4, abs=1e-5)


def test_a_variance_without_bias():
    x = np.random.default_rng(3).standard_normal((2, 5)).astype(np.float32)
    one = model("g (float[2,5] x) => (float[2,1] y) { s = Mul(x, x) y = ReduceMean<axes=[1]>(s) }")
    assert run(meant(one, BODIES, "unbiased"), x=x) == pytest.approx((x * x).sum(1, keepdims=True) / 4, rel=1e-5)


def test_a_remainder_in_float32():
    x = np.array([2**24 + 1, 7])  # the first is 2^24 in float32, whose remainder by 5 is 1
    one = model("g (int64[n] x) => (int64[n] y) { c = Constant<value_int=5>() y = Mod(x, c) }")
    assert run(meant(one, BODIES, "float32"), x=x).tolist() == [1, 2]


def test_a_sample_by_the_statistics_of_its_batch():
    one = model(
        "g (float[2,1,2] x) => (float[2,1,2] y) <float[1] g = {2}, float[1] b = {3}> "
        "{ y = InstanceNormalization<epsilon=0.0>(x, g, b) }"
    )
    x = np.array([[[1, 2]], [[5, 8]]], np.float32)
    made = run(meant(one, BODIES, "not of each sample"), x=x)
    assert made == pytest.approx((x - x.mean()) / x.std() * 2 + 3, rel=1e-5)
