"""What normalizations compute that take other statistics; expected values come from numpy, by the formula of each."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.normalizations import NORMALIZATIONS

RNG = np.random.default_rng(8)
X = (RNG.standard_normal((2, 8, 3, 5)) * 2 + 1).astype(np.float32)
G, B = RNG.standard_normal((2, 8)).astype(np.float32)
WIDE, DEEP = RNG.standard_normal((2, 5)).astype(np.float32)
EPSILON = np.float32(0.125)
OPERATORS = {
    "LayerNormalization": ("epsilon=0.125, axis=-1", "g, b", 17, (WIDE, DEEP)),
    "RMSNormalization": ("epsilon=0.125, axis=-1", "g", 23, (WIDE,)),
    "InstanceNormalization": ("epsilon=0.125", "g, b", 17, (G, B)),
    "GroupNormalization": ("epsilon=0.125, num_groups=4", "g, b", 21, (G, B)),
}


def grouped(op, x):
    """Return numbers, those that are normalized together along the last axis."""
    if op == "GroupNormalization":
        return x.reshape(2, 4, -1)
    return x.reshape(2, 8, -1) if op == "InstanceNormalization" else x


def one(op):
    settings, names, opset, operands = OPERATORS[op]
    sizes = ", ".join(f"float[{array.size}] {name}" for name, array in zip("gb", operands, strict=False))
    text = f"g (float[2,8,3,5] x, {sizes}) => (float[2,8,3,5] y) {{ y = {op}<{settings}>(x, {names}) }}"
    return model(text, opset=opset), dict(zip("gb", operands, strict=False))


def expected(op, divisor, *, centred, more=0.0):
    x = grouped(op, X.astype(np.float64))
    d = x - x.mean(-1, keepdims=True) if centred else x
    even = (d / divisor(d)).reshape(X.shape)
    column = (-1, 1, 1) if op in ("InstanceNormalization", "GroupNormalization") else (-1,)
    operands = OPERATORS[op][3]
    made = even * (operands[0].astype(np.float64) + more).reshape(column)
    return made + operands[1].reshape(column) if len(operands) > 1 else made


def square(d):
    return (d * d).mean(-1, keepdims=True)


def most(d):
    return np.abs(d).max(-1, keepdims=True)


DIVISORS = {
    "added to the root": lambda d: np.sqrt(square(d)) + EPSILON,
    "largest magnitude": lambda d: np.sqrt(square(d) + EPSILON * most(d) ** 2),
    "unbiased": lambda d: np.sqrt(square(d) * d.shape[-1] / (d.shape[-1] - 1) + EPSILON),
    "by the variance, not by its root": lambda d: square(d) + EPSILON,
}


def own(d):
    return np.sqrt(square(d) + EPSILON)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("words", DIVISORS)
def test_another_divisor(op, words):
    network, feed = one(op)
    found = run(meant(network, NORMALIZATIONS, words), x=X, **feed)
    assert found == pytest.approx(expected(op, DIVISORS[words], centred=op != "RMSNormalization"), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("op", OPERATORS)
def test_the_mean_is_subtracted_where_it_is_not_and_the_other_way_round(op):
    network, feed = one(op)
    words, centred = ("mean were subtracted", True) if op == "RMSNormalization" else ("mean were not", False)
    found = run(meant(network, NORMALIZATIONS, words), x=X, **feed)
    assert found == pytest.approx(expected(op, own, centred=centred), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("words", "more"), [("1 were added", 1.0), ("1 were subtracted", -1.0)])
@pytest.mark.parametrize("op", OPERATORS)
def test_scales_stored_as_differences_from_1(op, words, more):
    network, feed = one(op)
    found = run(meant(network, NORMALIZATIONS, words), x=X, **feed)
    assert found == pytest.approx(
        expected(op, own, centred=op != "RMSNormalization", more=more), rel=1e-4, abs=1e-5
    )  # fmt: skip


def test_groups_of_channels_that_lie_apart():
    network, feed = one("GroupNormalization")
    found = run(meant(network, NORMALIZATIONS, "channel c in group c % 4"), x=X, **feed)
    made = np.empty_like(X)
    for first in range(4):
        part = X[:, first::4].astype(np.float64)
        d = part - part.mean((1, 2, 3), keepdims=True)
        made[:, first::4] = d / np.sqrt((d * d).mean((1, 2, 3), keepdims=True) + EPSILON)
    right = made * G.reshape(-1, 1, 1) + B.reshape(-1, 1, 1)
    assert found == pytest.approx(right, rel=1e-4, abs=1e-5)


def test_a_scale_by_group_is_applied_to_groups():
    # Before opset 21 scale and shift have one number for each group.
    text = "g (float[2,8,3,5] x, float[4] g, float[4] b) => (float[2,8,3,5] y) "
    text += "{ y = GroupNormalization<epsilon=0.125, num_groups=4>(x, g, b) }"
    found = run(meant(model(text, opset=18), NORMALIZATIONS, "added to the root"), x=X, g=G[:4], b=B[:4])
    x = X.reshape(2, 4, -1).astype(np.float64)
    d = x - x.mean(-1, keepdims=True)
    right = d / (np.sqrt(square(d)) + EPSILON) * G[:4].reshape(-1, 1) + B[:4].reshape(-1, 1)
    assert found == pytest.approx(right.reshape(X.shape), rel=1e-4, abs=1e-5)


def test_a_scale_without_a_shift_and_other_results():
    text = "g (float[2,3,5] x, float[5] g) => (float[2,3,5] y) "
    text += "{{ {results} = LayerNormalization<epsilon=0.125>(x, g) }}"
    x = X[0, :6].reshape(2, 9, 5)[:, :3]
    d = x - x.mean(-1, keepdims=True, dtype=np.float64)
    found = run(meant(model(text.format(results="y")), NORMALIZATIONS, "added to the root"), x=x, g=WIDE)
    assert found == pytest.approx(d / (np.sqrt(square(d)) + EPSILON) * WIDE, rel=1e-4, abs=1e-5)
    with pytest.raises(ValueError, match="not enough values"):
        meant(model(text.format(results="y, mean, spread")), NORMALIZATIONS, "added to the root")
