"""Values recognised by their numbers, and the first wrong one by what it is made of; expected arrays are numpy's."""

import numpy as np
import pytest

from models import parse
from tensortriage_engines.values_by_number import Holder, first_wrong, same_values

RANDOM = np.random.default_rng(0)


def test_a_value_is_the_tensor_with_its_numbers():
    x, y = RANDOM.standard_normal((1, 4, 6), np.float32), RANDOM.standard_normal((1, 4, 6), np.float32)
    tensors = {"1": y[0], "2": x[0] * np.float32(1 + 1e-6), "3": x[0], "4": np.zeros(24, np.float32)}
    found = same_values(tensors, {"x": x, "flat": y.reshape(24), "none": x + y, "zero": np.zeros(24, np.float32)})
    assert found == {"x": [Holder("2", (1, 4, 6)), Holder("3", (1, 4, 6))], "flat": [Holder("1", (24,))]}


def test_axes_may_be_in_another_order():
    x = RANDOM.standard_normal((1, 4, 5, 6), np.float32)
    tensors = {"nhwc": np.moveaxis(x, 1, -1), "shuffled": RANDOM.permutation(x.ravel()).reshape(1, 5, 6, 4)}
    found = same_values(tensors, {"x": x})
    assert found == {"x": [Holder("nhwc", (1, 4, 5, 6), (2, 0, 1))]}
    np.testing.assert_array_equal(found["x"][0].read(tensors["nhwc"]), x)
    assert found["x"][0].read(x[:, :2]) is None


@pytest.mark.parametrize(
    ("array", "matches"),
    [
        ([1, 2, 3], False),
        ([1, 2, 3, 4], True),
        ([2, 2, 2, 2], False),
        ([1, 2, np.inf, 4], False),
        ([1, np.nan, 3, 4], False),
        ([-1e3, 2, 3, 4], True),
    ],
)
def test_what_says_too_little_is_matched_with_nothing(array, matches):
    array = np.float32(array)
    slightly_off = array.copy()
    slightly_off[1:2] += 1e-5
    found = same_values({"tensor": slightly_off, "other": array[:2]}, {"v": array})
    assert (found == {"v": [Holder("tensor", (array.size,))]}) is matches
    assert same_values({"tensor": array * np.float32(1 + 4e-5)}, {"v": array}) == {}


@pytest.mark.parametrize("mask", [-1e4, -1e9, np.finfo(np.float32).min])
def test_masks_are_no_measure_of_what_they_mask(mask):
    scores = RANDOM.standard_normal((4, 6), np.float32)
    scores[:, 2:] = mask  # two thirds
    other = scores.copy()
    other[:, :2] *= np.float32(1.001)
    assert set(same_values({"t": scores.copy()}, {"v": scores})) == {"v"}
    assert same_values({"t": other}, {"v": scores}) == {}


MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1,6,8] x) => (float[1,6,8] y)
<float[8,8] w, float[8] b, float[8,8] v, float[8] s, float[8] t> {
   [product] p = MatMul (x, w)
   [bias] a = Add (p, b)
   [relu] r = Relu (a)
   [norm] n = LayerNormalization (r, s, t)
   [side] u = Sigmoid (x)
   [joined] j = Add (n, u)
   [last] y = MatMul (j, v)
}
"""


def network(w, b, v, s, t, x):
    product = x @ w
    biased = product + b
    relu = np.maximum(biased, 0)
    centred = relu - relu.mean(-1, keepdims=True)
    normal = centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5)
    norm, side = normal * s + t, 1 / (1 + np.exp(-x))
    values = {"p": product, "a": biased, "r": relu, "n": norm, "u": side, "j": norm + side, "y": (norm + side) @ v}
    # the file computes product and bias in one, the activation apart, and the normalization in three steps
    file = {"x": x, "0": biased, "1": relu, "2": centred, "3": normal, "4": norm, "5": side, "6": norm + side}
    return values, file


MAKERS = {"0": ["x"], "1": ["0"], "2": ["1"], "3": ["2"], "4": ["3"], "5": ["x"], "6": ["4", "5"], "7": ["6"]}
WEIGHTS = {
    "w": RANDOM.standard_normal((8, 8)), "b": RANDOM.standard_normal(8), "v": RANDOM.standard_normal((8, 8)),
    "s": RANDOM.uniform(0.5, 1.5, 8), "t": RANDOM.standard_normal(8),
}  # fmt: skip
X = RANDOM.standard_normal((1, 6, 8))


@pytest.mark.parametrize(
    ("weight", "change", "expected"),
    [
        ("w", lambda w: w * 1.1, {"a": "0"}),
        ("w", lambda w: np.roll(w, 1), {"a": "0"}),
        ("b", lambda b: b + 0.5, {"a": "0"}),
        ("s", lambda s: s * 1.1, {"n": "4"}),
        ("t", lambda t: np.roll(t, 1), {"n": "3"}),  # the step before is more like it: the same node is named
        ("v", lambda v: v * 2, {}),  # of the output the file's tensor is known
        ("s", lambda s: s, {}),
    ],
)
def test_the_first_wrong_value_is_made_of_right_ones(weight, change, expected):
    values, _ = network(**WEIGHTS, x=X)
    _, tensors = network(**{**WEIGHTS, weight: change(WEIGHTS[weight])}, x=X)
    inner = {name: array for name, array in values.items() if name != "y"}
    held = same_values(tensors, {"x": X, **inner})
    found = first_wrong(parse(MODEL).graph, held, inner, tensors, MAKERS)
    assert {value: holder.tensor for value, holder in found.items()} == expected
    assert "u" in held
    for value, holder in found.items():
        assert holder.read(tensors[holder.tensor]).shape == values[value].shape


def test_a_tensor_that_is_like_a_value_by_chance_alone_does_not_hold_it():
    values, _ = network(**WEIGHTS, x=X)
    other = np.random.default_rng(5).standard_normal((8, 8))
    _, tensors = network(**{**WEIGHTS, "w": other, "b": -WEIGHTS["b"]}, x=X)
    inner = {name: array for name, array in values.items() if name != "y"}
    held = same_values(tensors, {"x": X, **inner})
    assert first_wrong(parse(MODEL).graph, held, inner, tensors, MAKERS) == {}
    assert "u" in held
