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
