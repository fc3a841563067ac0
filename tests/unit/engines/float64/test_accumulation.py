"""Sums as units for matrices keep them, against plain loops over single products."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortriage.engines.float64.accumulation import EXACT_SUMS, Accumulation
from tensortriage.values.dtype import DType

NARROW = {DType.FLOAT16: np.float16, DType.BFLOAT16: ml_dtypes.bfloat16, DType.FLOAT: np.float32}


def few_bits(rng, *shape):
    """Return float64 numbers of 8 bits each: float32 holds sums of a block of their products exactly."""
    return rng.integers(-127, 128, shape) / 16.0


def towards_zero(total, kind):
    near = np.asarray(total).astype(kind)
    if abs(float(near)) > abs(float(total)):
        near = np.nextafter(near, kind(0))
    return near


def looped(left, right, kind, block, truncate):
    """Return one row times one column: products exact, a rounding after each block, the last block first."""
    total = 0.0
    for start in reversed(range(0, len(left), block)):
        total += sum(a * b for a, b in zip(left[start : start + block], right[start : start + block], strict=True))
        total = float(towards_zero(total, kind) if truncate else np.asarray(total).astype(kind))
    return total


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("accumulator", [DType.FLOAT16, DType.BFLOAT16])
@given(st.integers(0, 2**32 - 1), st.integers(1, 100), st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_narrow_accumulators_bit_by_bit(accumulator, truncate, seed, depth, block):
    rng = np.random.default_rng(seed)
    left, right = few_bits(rng, 3, depth), few_bits(rng, depth, 4)
    found = Accumulation(accumulator, block, truncate).matmul(left, right)
    expected = [[looped(row, column, NARROW[accumulator], block, truncate) for column in right.T] for row in left]
    assert found.dtype == np.float64
    assert found.tolist() == expected


def test_float32_truncated_bit_by_bit():
    rng = np.random.default_rng(0)
    left, right = few_bits(rng, 2, 70) + 2.0**10, few_bits(rng, 70, 2)
    found = Accumulation(DType.FLOAT, 8, truncate=True).matmul(left, right)
    expected = [[looped(row, column, np.float32, 8, True) for column in right.T] for row in left]
    assert found.tolist() == expected


def test_float16_sums_overflow_as_the_type_does():
    ones = np.full((1, 64), 256.0)
    with np.errstate(over="ignore"):
        assert Accumulation(DType.FLOAT16, 16).matmul(ones, ones.T).item() == np.inf
        assert Accumulation(DType.FLOAT16, 16, truncate=True).matmul(ones, ones.T).item() == 65504
    assert Accumulation(DType.BFLOAT16, 16).matmul(ones, ones.T).item() == 64 * 65536


@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.integers(1, 64))
@settings(max_examples=40, deadline=None)
def test_float32_products_stay_within_the_bound_of_any_order(seed, depth, block):
    rng = np.random.default_rng(seed)
    left = rng.standard_normal((3, depth)).astype(np.float32).astype(np.float64)
    right = rng.standard_normal((depth, 5)).astype(np.float32).astype(np.float64)
    found = Accumulation(DType.FLOAT, block).matmul(left, right)
    # Higham, "Accuracy and Stability of Numerical Algorithms", 3.1: |error| <= n u |x||y| for any order of addition.
    bound = (depth + 1) * 2.0**-24 * (np.abs(left) @ np.abs(right))
    assert np.all(np.abs(found - left @ right) <= 1.01 * bound)
    assert np.array_equal(found, found.astype(np.float32))


def test_the_block_decides_the_order():
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((16, 512)), rng.standard_normal((512, 16))
    sums = [Accumulation(DType.FLOAT, block).matmul(left, right) for block in (16, 64, 512)]
    assert not np.array_equal(sums[0], sums[1])
    assert not np.array_equal(sums[1], sums[2])


@pytest.mark.parametrize("accumulator", [None, DType.FLOAT, DType.FLOAT16])
@pytest.mark.parametrize(
    ("left", "right"), [((4,), (4,)), ((4,), (4, 3)), ((2, 4), (4,)), ((5, 2, 4), (4, 3)), ((2, 4), (5, 4, 3))]
)
def test_shapes_are_those_of_numpy(accumulator, left, right):
    x, y = np.ones(left), np.ones(right)
    found = Accumulation(accumulator, 2).matmul(x, y)
    assert found.shape == np.matmul(x, y).shape
    assert np.all(found == 4)


@pytest.mark.parametrize("options", [{}, {"operand_bits": 10}, {"accumulator": DType.FLOAT}])
def test_operands_in_float32_are_taken_as_those_in_float64(options):
    """Weights come as they are stored, and transposed ones in the order in which they lie in memory."""
    sums, rng = Accumulation(**options), np.random.default_rng(3)
    x, w = rng.standard_normal((5, 70)), rng.standard_normal((9, 70)).astype(np.float32).T
    found = sums.matmul(x, w)
    assert found.dtype == np.float64
    assert np.allclose(
        found, sums.matmul(x, np.ascontiguousarray(w, np.float64)), rtol=0, atol=1e-5 if options else 1e-13
    )


def test_products_without_terms_and_of_integers():
    assert Accumulation(DType.FLOAT16).matmul(np.ones((2, 0)), np.ones((0, 3))).tolist() == [[0] * 3] * 2
    whole = np.array([[3, 4]])
    assert Accumulation(DType.FLOAT16).matmul(whole, whole.T).dtype == whole.dtype


def bits_kept(x, bits, cut):
    """Return one float32 number with that many bits of fraction, by Python's own rounding to even."""
    fraction, exponent = np.frexp(x)
    scaled = float(fraction) * 2.0 ** (bits + 1)
    return float(np.ldexp(np.trunc(scaled) if cut else round(scaled), int(exponent) - bits - 1))


@given(
    st.floats(-(2.0**100), 2.0**100, width=32).filter(lambda x: abs(x) > 2.0**-100),
    st.sampled_from([7, 10]),
    st.booleans(),
)
def test_operands_keep_so_many_bits(x, bits, cut):
    found = Accumulation(None, operand_bits=bits, operand_truncate=cut).operand(np.array([x]), 0)
    assert found.dtype == np.float64
    assert found[0] == bits_kept(x, bits, cut)


def test_operands_that_are_not_finite_stay():
    odd = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(Accumulation(operand_bits=10).operand(odd, 0), odd)
    assert EXACT_SUMS.operand(odd, 0) is odd


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_float32_sums_over_axes(axis, keepdims):
    rng = np.random.default_rng(2)
    x = few_bits(rng, 3, 70, 5)  # exact in float32 in any order
    sums = Accumulation(DType.FLOAT, 32)
    np.testing.assert_array_equal(sums.sum(x, axis, keepdims=keepdims), np.sum(x, axis=axis, keepdims=keepdims))
    mean = sums.mean(x, axis, keepdims=keepdims)
    np.testing.assert_allclose(mean, np.mean(x, axis=axis, keepdims=keepdims), rtol=1e-15)
    assert mean.shape == np.mean(x, axis=axis, keepdims=keepdims).shape


def test_float32_sum_rounds_block_by_block_from_the_last():
    x = np.array([2.0**-25, 2.0**-25, 1.0, 0.0])
    # Last block first: 1, then 1 + 2**-24 is a tie that goes to even; the other way it would be the same block sum.
    assert Accumulation(DType.FLOAT, 2).sum(x) == 1.0
    assert Accumulation(DType.FLOAT, 1).sum(x[::-1]) == 1.0 + 0.0
    assert EXACT_SUMS.sum(x) == 1.0 + 2.0**-24


@pytest.mark.parametrize("accumulator", [None, DType.FLOAT, DType.FLOAT16])
def test_total_of_terms(accumulator):
    terms = [np.full((2,), 2048.0), np.full((2,), 1.0), np.full((2,), 1.0), np.full((2,), 1.0)]
    sums = Accumulation(accumulator, 2)
    found = sums.total(sums.term(term) for term in terms)
    # float16 has steps of 2 from 2048 on: 2049 is a tie that goes to 2048, then 2048 + 2 is exact.
    assert found.tolist() == [2050.0 if accumulator is DType.FLOAT16 else 2051.0] * 2
    assert terms[0].tolist() == [2048.0] * 2


def test_few_channels_are_padded_where_running_sums_are_narrow():
    narrow, wide = Accumulation(DType.FLOAT16, 16), Accumulation(DType.FLOAT, 16)
    assert [narrow.over_channels(count).block for count in (1, 3, 7, 8, 64)] == [1, 3, 7, 16, 16]
    assert wide.over_channels(1) == wide
    assert EXACT_SUMS.over_channels(1) == EXACT_SUMS
