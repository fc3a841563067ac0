"""Blocks that are not plain: NaN and Inf, 64-bit integers, complex numbers and strings, each added as it should be."""

import numpy as np
import pytest

from tensortriage.compare.metrics.block_metrics import exact_errors, tally_block, text_errors
from tensortriage.compare.metrics.block_totals import BlockTotals
from tensortriage.compare.metrics.dtype_pairs import lane

INF, NAN = np.inf, np.nan


def tally(reference, target, start=0):
    totals = BlockTotals(1)
    with np.errstate(all="ignore"):
        tally_block(totals, lane(reference.dtype, target.dtype), reference, target, start)
    return totals


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_is_not_finite_is_counted_and_put_aside(dtype):
    found = tally(np.array([1, NAN, INF, 2, NAN, 5], dtype), np.array([1, NAN, -INF, NAN, 3, 7], dtype), start=10)
    assert (found.nan_reference, found.nan_target, found.inf_reference, found.inf_target) == (2, 2, 1, 1)
    assert (found.nonfinite_mismatch, found.compared, found.error_max) == (3, 2, 2.0)
    assert found.worst[0] == (INF, 12)
    assert (found.reference_max, found.target_max) == (5.0, 7.0)  # a finite number counts for its own side


@pytest.mark.parametrize(
    ("one", "other", "error"),
    [
        (np.int64([-(2**63)]), np.int64([2**63 - 1]), 2.0**64),
        (np.uint64([2**64 - 1]), np.int64([-1]), 2.0**64),
        (np.uint64([2**63]), np.int64([2**63 - 1]), 1.0),
        (np.uint64([5]), np.int64([-3]), 8.0),
        (np.int64([2**53 + 1]), np.int64([2**53]), 1.0),
        (np.array([True]), np.array([False]), 1.0),
        (np.float32([1.5]), np.int64([1]), 0.5),
    ],
)
def test_integers_are_subtracted_without_overflow_or_rounding(one, other, error):
    assert exact_errors(one, other).tolist() == [error]
    assert exact_errors(other, one).tolist() == [error]


def test_wide_integers_and_complex_numbers_have_their_own_way():
    wide = tally(np.int64([2**60, 7]), np.int64([2**60 + 1, 7]))
    assert (wide.error_max, wide.ulp_max, wide.nonzero_errors) == (1.0, 1.0, 1)
    pair = tally(np.array([3 + 4j, NAN * 1j]), np.array([3 + 0j, 1 + 0j]))
    assert (pair.error_max, pair.compared, pair.nan_reference, pair.reference_max) == (4.0, 1, 1, 5.0)
    assert pair.product_sum == 9.0


def test_strings_differ_or_do_not():
    errors = text_errors(np.array(["a", "b", "c"]), np.array([b"a", b"x", b"c"]))
    assert errors.tolist() == [0.0, 1.0, 0.0]
    words = tally(np.array(["a", "b"], object), np.array(["a", "c"], object))
    assert (words.error_sum, words.compared, words.relative_max, words.product_sum) == (1.0, 2, 1.0, 1.0)


def test_numbers_beyond_exact_squares_are_computed_in_float64():
    tiny = tally(np.float32([1e-30, 2e-30]), np.float32([1e-30, 1e-30]))
    assert tiny.error_square_sum == pytest.approx(1e-60, rel=1e-5)
    assert tiny.reference_square_sum == pytest.approx(5e-60, rel=1e-5)
