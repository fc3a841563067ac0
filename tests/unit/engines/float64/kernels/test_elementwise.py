"""Expected values come from Python's and numpy's own functions, from closed formulas, or are written out."""

import dataclasses
import math

import numpy as np
import pytest

from kernel_calls import run
from tensortriage.engines.float64.arithmetic import EXACT
from tensortriage.engines.float64.function_accuracy import Functions
from tensortriage.engines.spec import Hardware

X = np.array([-2.5, -0.25, 0.0, 0.5, 3.0])


def logistic(x):
    return 1 / (1 + math.exp(-x))


FORMULAS = {
    "Relu": (lambda x: max(x, 0), {}),
    "Sigmoid": (logistic, {}),
    "Softsign": (lambda x: x / (1 + abs(x)), {}),
    "Softplus": (lambda x: math.log(1 + math.exp(x)), {}),
    "HardSwish": (lambda x: x * min(max(x + 3, 0), 6) / 6, {}),
    "Mish": (lambda x: x * math.tanh(math.log(1 + math.exp(x))), {}),
    "Erf": (math.erf, {}),
    "Round": (round, {}),
    "LeakyRelu": (lambda x: x if x >= 0 else 0.01 * x, {}),
    "LeakyRelu of 0.5": (lambda x: x if x >= 0 else 0.5 * x, {"alpha": 0.5}),
    "ThresholdedRelu": (lambda x: x if x > 1 else 0, {}),
    "ThresholdedRelu of 0.5": (lambda x: x if x > 0.5 else 0, {"alpha": 0.5}),
    "Elu": (lambda x: x if x >= 0 else math.exp(x) - 1, {}),
    "Celu": (lambda x: max(0, x) + min(0, 2 * (math.exp(x / 2) - 1)), {"alpha": 2.0}),
    "Selu": (lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * (math.exp(x) - 1)), {}),
    "HardSigmoid": (lambda x: min(1, max(0, 0.2 * x + 0.5)), {}),
    "HardSigmoid of 1 and 0": (lambda x: min(1, max(0, x)), {"alpha": 1.0, "beta": 0.0}),
    "Gelu": (lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))), {}),
    "Gelu by tanh": (
        lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), {"approximate": "tanh"}),
    "Swish": (lambda x: x * logistic(x), {}),
    "Swish of 2": (lambda x: x * logistic(2 * x), {"alpha": 2.0}),
    "Shrink": (lambda x: x if abs(x) > 0.5 else 0, {}),
    "Shrink of 0.2": (lambda x: x + 1 if x < -0.2 else x - 1 if x > 0.2 else 0, {"lambd": 0.2, "bias": 1.0}),
}  # fmt: skip


@pytest.mark.parametrize("words", FORMULAS)
def test_a_function_is_its_formula(words):
    formula, attributes = FORMULAS[words]
    expected = [formula(x) for x in X.tolist()]
    # The constants of Selu are rounded to float32 in ONNX's text.
    np.testing.assert_allclose(
        run(words.split()[0], X, **attributes), expected, rtol=1e-6 if "Selu" in words else 1e-14
    )


def test_division_of_integers_is_cut_off_towards_zero():
    found = run("Div", np.int32([7, -7, 7, -7, 6, 0]), np.int32([2, 2, -2, -2, -3, -5]))
    assert found.tolist() == [3, -3, -3, 3, -2, 0]
    assert found.dtype == np.int32
    assert run("Div", np.uint8([200]), np.uint8([3])).tolist() == [66]


def test_a_cpu_divides_by_the_rounded_reciprocal_but_where_that_is_not_normal():
    cpu = dataclasses.replace(EXACT, functions=Functions(Hardware.CPU))
    gpu = dataclasses.replace(EXACT, functions=Functions(Hardware.GPU))
    x, y = np.array([10.0, 8.0, 1.0, 1e-30, 3.0]), np.array([3.0, 4.0, 0.0, 1e20, 1e39])
    with np.errstate(all="ignore"):
        found, exact = run("Div", x, y, arithmetic=cpu), x / y
        np.testing.assert_array_equal(run("Div", x, y, arithmetic=gpu), exact)
    assert found[0] == np.float32(10) * (np.float32(1) / np.float32(3)) != np.float32(10 / 3)
    assert found[1] == 2  # a power of two
    np.testing.assert_array_equal(found[2:], exact[2:])  # 1 / 0, and results or reciprocals below float32's smallest


def test_remainders_have_the_sign_of_the_divisor_or_of_the_dividend():
    assert run("Mod", [7, -7, 7, -7], [3, 3, -3, -3]).tolist() == [1, 2, -2, -1]
    assert run("Mod", [7.5, -7.5], [3.0, 3.0], fmod=1).tolist() == [1.5, -1.5]


def test_powers_of_integers_are_exact_and_of_their_type():
    assert run("Pow", np.int64([3, -2]), np.int32([39, 3])).tolist() == [3**39, -8]  # 3 ** 39 takes 62 bits
    assert run("Pow", np.int32([4]), np.array([0.5])).tolist() == [2]
    assert run("Pow", np.int32([2, 4]), np.int64([-1, 1])).tolist() == [0, 4]
    assert run("Pow", np.array([4.0]), np.int64([-1])).tolist() == [0.25]


def test_bits_and_logic():
    assert run("BitShift", np.uint8([1, 200]), np.uint8([3, 1]), direction="LEFT").tolist() == [8, 144]
    assert run("BitShift", np.uint8([8, 200]), np.uint8([3, 1]), direction="RIGHT").tolist() == [1, 100]
    assert run("Xor", [True, False], [True, True]).tolist() == [False, True]
    assert run("BitwiseNot", np.uint8([1])).tolist() == [254]
    assert run("Where", [True, False], X[:2], 9.0).tolist() == [-2.5, 9.0]
    assert run("LessOrEqual", X, 0.0).tolist() == [True, True, True, False, False]


def test_infinities_of_either_sign():
    x = np.array([np.inf, -np.inf, np.nan, 1])
    assert run("IsInf", x).tolist() == [True, True, False, False]
    assert run("IsInf", x, detect_negative=0).tolist() == [True, False, False, False]
    assert run("IsInf", x, detect_positive=0).tolist() == [False, True, False, False]
    assert run("IsNaN", x).tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("inputs", "attributes", "expected"),
    [
        ((-1.0, 1.0), {}, [-1, -0.25, 0, 0.5, 1]),
        ((None, 0.25), {}, [-2.5, -0.25, 0, 0.25, 0.25]),
        ((0.25,), {}, [0.25, 0.25, 0.25, 0.5, 3]),
        ((), {"version": 6, "min": -1.0, "max": 1.0}, [-1, -0.25, 0, 0.5, 1]),
        ((), {}, X.tolist()),
        ((2.0, 1.0), {}, [1] * 5),  # the upper bound wins
    ],
)
def test_clip(inputs, attributes, expected):
    assert run("Clip", X, *inputs, **attributes).tolist() == expected


def test_integers_stay_integers():
    assert run("Clip", np.int8([100, -100]), np.int8(-5), np.int8(5)).dtype == np.int8
    assert run("Relu", np.int32([-1, 1])).dtype == np.int32
    assert run("Shrink", np.int32([-3, 0, 3]), bias=1.0, lambd=1.0).tolist() == [-2, 0, 2]
    assert run("Shrink", np.int32([3])).dtype == np.int32


def test_any_number_of_tensors_are_folded():
    others = [X, X[:1], np.array([[1.0], [2.0]])]
    for op_type, expected in (("Max", np.maximum), ("Min", np.minimum), ("Sum", np.add)):
        np.testing.assert_array_equal(run(op_type, *others), expected(expected(X, X[0]), others[2]))
        np.testing.assert_array_equal(run(op_type, X), X)
    np.testing.assert_allclose(run("Mean", *others), (X + X[0] + others[2]) / 3)
    assert np.isnan(run("Max", [np.nan, 1.0], [1.0, np.nan])).all()


def test_slopes_of_prelu_are_for_what_is_negative():
    assert run("PRelu", X, 2.0).tolist() == [-5, -0.5, 0, 0.5, 3]


def test_dropout_is_the_identity_and_refuses_to_train():
    (same,) = run("Dropout", X)
    assert same.tolist() == X.tolist()
    _, mask = run("Dropout", X, outputs=2)
    assert mask.dtype == bool
    assert mask.all()
    run("Dropout", X, 0.0, True)
    run("Dropout", X, 0.5, False)
    run("Dropout", X, np.array([0.5]), np.array([False]))
    for ratio in (0.5, None):
        with pytest.raises(ValueError, match="training"):
            run("Dropout", X, ratio, True)
