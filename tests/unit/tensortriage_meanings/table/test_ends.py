"""What becomes of numbers beyond a type: expected values are written out, or by modulo 256."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.ends import ENDS

X = np.array([-300.0, -129.0, -128.0, -1.5, 0.0, 127.0, 200.0, 256.0, 300.0], np.float32)
LARGE = np.array([-5e9, -7.0, 0.0, 2.0**31, 5e9], np.float32)


def cast(made, number):
    return f"g (float[n] x) => ({made}[n] y) {{ y = Cast<to={number}>(x) }}"


def quantizer(made, zero):
    constants = f"s = Constant<value_float=1.0>() z = Constant<value={made} {{{zero}}}>()"
    return f"g (float[n] x) => ({made}[n] y) {{ {constants} y = QuantizeLinear(x, s, z) }}"


CASES = [
    ("bytes wrap", cast("uint8", 2), "wrapped", X, np.trunc(X) % 256),
    ("bytes saturate", cast("uint8", 2), "saturated", X, np.clip(np.trunc(X), 0, 255)),
    ("int8 saturates", cast("int8", 3), "saturated", X, np.clip(np.trunc(X), -128, 127)),
    ("quantizer wraps", quantizer("uint8", 10), "wrapped", X, (np.rint(X) + 10) % 256),
    ("narrow quantizer", quantizer("int8", 0), "-127", X, np.clip(np.rint(X), -127, 127)),
    ("as x86 casts", cast("int64", 7), "on x86", LARGE, [-(2**31), -7, 0, -(2**31), -(2**31)]),
    ("ends of int32", cast("int64", 7), "ended at the ends", LARGE, [-(2**31), -7, 0, 2**31 - 1, 2**31 - 1]),
]


@pytest.mark.parametrize(("text", "words", "x", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_numbers_beyond_a_type(text, words, x, expected):
    made = model(text)
    np.testing.assert_array_equal(run(meant(made, ENDS, words), x=x), np.asarray(expected))


NAN = np.array([np.nan, 2, -1], np.float32)
HALF = np.array([0.5, -0.25, 0, -3, np.nan], np.float32)


@pytest.mark.parametrize(
    ("call", "words", "expected"),
    [
        ("Max(x, o)", "a NaN counted as the smallest", [1, 2, 1]),
        ("Min(x, o)", "a NaN counted as the largest", [1, 1, -1]),
        ("Relu(x)", "a NaN counted as 0", [0, 2, 0]),
        ("Sign(x)", "a NaN counted as 0", [0, 1, -1]),
        ("Clip(x, l, o)", "a NaN counted as the smallest", [-0.5, 1, -0.5]),
        ("ReduceMax<axes=[0], keepdims=0>(x)", "a NaN counted as the smallest", 2),
    ],
)
def test_nan_that_comparisons_drop(call, words, expected):
    text = "g (float[3] x) => (float[n] y) <float o = {1}, float l = {-0.5}> { y = " + call + " }"
    one = model(text.replace("float[n]", "float") if "Reduce" in call else text)
    assert np.isnan(run(one, x=NAN)).any()
    assert run(meant(one, ENDS, words), x=NAN).tolist() == expected


def test_a_cast_to_bool_that_cuts_fractions_off():
    one = model("g (float[n] x) => (bool[n] y) { y = Cast<to=9>(x) }")
    x = HALF[:4]
    assert run(one, x=x).tolist() == [True, True, False, True]
    assert run(meant(one, ENDS, "fractions were cut off"), x=x).tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("away from zero", [-3, -2, 1, 2, 3]),
        ("rounded up", [-2, -1, 1, 2, 3]),
        ("cut off", [-2, -1, 0, 1, 2]),
        ("rounded down", [-3, -2, 0, 1, 2]),
    ],
)
def test_quantizers_that_round_otherwise(words, expected):
    constants = "s = Constant<value_float=0.5>() z = Constant<value=int8 {1}>()"
    one = model(f"g (float[n] x) => (int8[n] y) {{ {constants} y = QuantizeLinear(x, s, z) }}")
    x = np.array([-2.5, -1.5, 0.5, 1.5, 2.5], np.float32) / 2
    assert run(one, x=x).tolist() == [-1, -1, 1, 3, 3]  # -2, -2, 0, 2, 2 from zero point 1 on
    assert run(meant(one, ENDS, words), x=x).tolist() == [each + 1 for each in expected]


def test_bounds_that_cross():
    """ONNX: Clip is Min(max, Max(x, min))."""
    one = model("g (float[n] x) => (float[n] y) <float a = {2}, float b = {1}> { y = Clip(x, a, b) }")
    x = np.array([0, 1.5, 3], np.float32)
    assert run(one, x=x).tolist() == [1, 1, 1]
    assert run(meant(one, ENDS, "all became min"), x=x).tolist() == [2, 2, 2]
