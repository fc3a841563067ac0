"""Rounding against exact rational arithmetic: the nearest value of the type, ties to the even one."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.engines.float64.number_rounding import BLOCK, Rounding, in_blocks, rounded
from tensortriage.values.dtype import DType

TYPES = (DType.FLOAT, DType.FLOAT16, DType.BFLOAT16)


def neighbours(x, dtype):
    """Return the values of the type around a number, found by stepping through the type itself."""
    near = np.asarray(np.float32(x)).astype(dtype.numpy)
    steps = [np.nextafter(near, dtype.numpy.type(side)) for side in (-np.inf, np.inf)]
    return [value for value in (steps[0], near, steps[1]) if np.isfinite(np.float64(value))]


def is_even(value, dtype):
    return int(np.asarray(value).view(np.uint16 if dtype.bits == 16 else np.uint32)) % 2 == 0


@given(st.floats(-60000, 60000), st.sampled_from(TYPES))
def test_result_is_the_nearest_value_of_the_type(x, dtype):
    found = float(rounded(np.array([x]), dtype)[0])
    distances = {float(v): (abs(Fraction(float(v)) - Fraction(x)), v) for v in neighbours(x, dtype)}
    least = min(distance for distance, _ in distances.values())
    nearest = [v for distance, v in distances.values() if distance == least]
    assert found in {float(v) for v in nearest}
    if len(nearest) > 1 and 0.0 not in distances:
        assert found == next(float(v) for v in nearest if is_even(v, dtype))


def test_bfloat16_is_rounded_once():
    # 1 + 2**-8 is a tie of bfloat16; a hair above it must go up, though float32 would bring it onto the tie.
    x = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8, 1 + 3 * 2**-8])
    assert rounded(x, DType.BFLOAT16).tolist() == [1 + 2**-7, 1.0, 1 + 2**-6]


@pytest.mark.parametrize(
    ("dtype", "x", "expected"),
    [
        (DType.FLOAT16, [65519.9, 65520.0, -1e5, 2.0**-25, 2.0**-24], [65504, np.inf, -np.inf, 0, 2.0**-24]),
        (DType.BFLOAT16, [3.4e38, -1e39, 2.0**-134, 1.5 * 2.0**-133, np.inf], None),
        (DType.FLOAT, [1e39, 2.0**-150, 2.0**-149, np.inf], [np.inf, 0, 2.0**-149, np.inf]),
        (DType.FLOAT8E5M2, [61439.0, 61440.0], [57344, np.inf]),
    ],
)
def test_ends_of_the_range(dtype, x, expected):
    with np.errstate(over="ignore"):
        found = rounded(np.array(x), dtype)
        if expected is None:  # these are no double roundings, so ml_dtypes by way of float32 is right
            expected = np.array(x, np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)
    assert found.tolist() == list(expected)
    assert np.isnan(rounded(np.array([np.nan]), dtype)).all()


def test_subnormal_results_are_flushed_with_their_sign():
    flush = Rounding((DType.FLOAT,), flush=True)
    found = flush(np.array([1e-40, -1e-40, 2.0**-126, 1.0]))
    assert found.tolist() == [0.0, 0.0, 2.0**-126, 1.0]
    assert np.signbit(found).tolist() == [False, True, False, False]
    assert Rounding((DType.FLOAT16,), flush=True)(np.array([2.0**-24])).item() == 2.0**-24


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8E4M3FN, DType.FLOAT8E5M2])
@given(st.lists(st.floats(width=32), min_size=1, max_size=5))
def test_float32_arrays_are_rounded_as_ml_dtypes_rounds_them(dtype, numbers):
    x = np.array(numbers, np.float32)
    with np.errstate(all="ignore"):
        expected = x.astype(dtype.numpy).astype(np.float32)
        found = rounded(x, dtype)
    np.testing.assert_array_equal(found, expected)
    assert np.array_equal(np.signbit(found)[~np.isnan(found)], np.signbit(expected)[~np.isnan(expected)])


def test_scalars_and_strided_arrays():
    assert rounded(np.array(0.1), DType.FLOAT16).shape == ()
    strided = np.arange(12.0).reshape(3, 4)[:, ::2] + 2048
    assert rounded(strided, DType.FLOAT16).tolist() == [[2048, 2050], [2052, 2054], [2056, 2058]]


def test_other_arrays_stay_as_they_are():
    numbers = np.arange(3)
    assert Rounding((DType.FLOAT16,))(numbers) is numbers


@pytest.mark.parametrize("shape", [(3, BLOCK), (BLOCK + 1,), (7,)])
def test_blocks_of_an_array_are_changed_as_the_whole_of_it(shape):
    x = np.random.default_rng(2).standard_normal(shape) * 1e-3
    x.reshape(-1)[-1] = np.nan
    for rounding in (Rounding((DType.FLOAT, DType.BFLOAT16)), Rounding((DType.FLOAT16,), cut=True)):
        np.testing.assert_array_equal(rounding(x), rounding.of_block(x))
        np.testing.assert_array_equal(rounding(x.T), rounding.of_block(x.T))
    total = in_blocks(np.add, x, x[::-1].copy())
    np.testing.assert_array_equal(total, x + x[::-1])
    np.testing.assert_array_equal(in_blocks(np.add, x.T, x.T), x.T + x.T)
