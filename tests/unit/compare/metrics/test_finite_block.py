"""One block of finite numbers: every total against the same in float64, written out."""

import numpy as np
import pytest

from tensortriage.compare.metrics.block_totals import BlockTotals
from tensortriage.compare.metrics.dtype_pairs import F32, F64, SAFE, lane
from tensortriage.compare.metrics.finite_block import ZERO_REFERENCE, divide, same_memory, tally_equal, tally_plain

RNG = np.random.default_rng(0)
WAY = lane(F32, F32)


def plain(reference, target, stride=1, **more):
    tally = BlockTotals(stride)
    with np.errstate(all="ignore"):
        done = tally_plain(tally, WAY, (reference, target), 0, (F32, SAFE[F32]), **more)
    return done, tally


@pytest.mark.parametrize("zeros", [0, 3, 2000])
def test_the_totals_are_those_of_float64(zeros):
    reference = RNG.standard_normal(5000).astype(np.float32)
    target = (reference * 1.1).astype(np.float32)
    reference[:zeros], target[: zeros // 2] = 0.0, 0.0
    done, tally = plain(reference, target)
    wide, other = reference.astype(np.float64), target.astype(np.float64)
    error = np.abs(other - wide)
    magnitude = np.where(wide == 0.0, ZERO_REFERENCE, np.abs(wide))
    assert done
    assert (tally.compared, tally.nonzero_errors) == (5000, np.count_nonzero(error))
    for found, expected in (
        (tally.error_sum, error.sum()), (tally.error_square_sum, np.square(error).sum()),
        (tally.error_max, error.max()), (tally.relative_max, (error / magnitude).max()),
        (tally.reference_square_sum, np.square(wide).sum()), (tally.target_square_sum, np.square(other).sum()),
        (tally.product_sum, (wide * other).sum()), (tally.relative_sum, (error / magnitude).sum()),
        (tally.reference_max, np.abs(wide).max()), (tally.target_max, np.abs(other).max()),
    ):  # fmt: skip
        assert found == pytest.approx(expected, rel=1e-5)
    worst = np.argsort(-error, kind="stable")[:5]
    assert [place for _, place in tally.worst] == worst.tolist()


def test_a_block_beyond_the_bounds_adds_nothing():
    huge = np.full(8, 1e30, np.float32)  # its square is beyond float32
    done, tally = plain(huge, 2 * huge)
    assert (done, tally) == (False, BlockTotals(1))
    wide = BlockTotals(1)
    assert tally_plain(wide, WAY, (huge, 2 * huge), 0, (F64, None))
    assert wide.error_square_sum == pytest.approx(8e60, rel=1e-6)


def test_values_that_do_not_count_are_left_out_of_counts_and_samples():
    reference, target = np.zeros(6, np.float32), np.float32([1, 0, 2, 0, 0, 0])
    _, tally = plain(reference, target, compared=np.array([1, 1, 1, 0, 0, 0], bool))
    assert (tally.compared, [part.tolist() for part in tally.samples]) == (3, [[1.0, 0.0, 2.0]])


def test_a_block_without_errors_is_both_sides():
    values = RNG.standard_normal(100).astype(np.float32)
    tally = BlockTotals(7)
    assert tally_equal(tally, WAY, values, 3)
    assert (tally.compared, tally.nonzero_errors, tally.ulp_max) == (100, 0, 0.0)
    assert tally.zero_samples == len([place for place in range(3, 103) if place % 7 == 0])
    assert tally.product_sum == tally.reference_square_sum == tally.target_square_sum
    assert not tally_equal(BlockTotals(1), WAY, np.float32([np.inf]), 0)


def test_the_same_memory_is_more_than_equal_numbers():
    bits = np.dtype(np.uint32)
    zeros = np.zeros(3000, np.float32)
    negative = zeros.copy()
    negative[2500] = -0.0
    assert same_memory(bits, zeros, zeros.copy())
    assert not same_memory(bits, zeros, negative)


def test_errors_where_the_reference_is_zero_are_over_the_smallest_number_of_polygraphy():
    errors, relative = np.array([2.0, 3.0, 0.0]), np.empty(3)
    peaks, at_zero = divide(errors, np.array([4.0, 0.0, 0.0]), relative)
    assert (relative.tolist(), at_zero) == ([0.5, 3.0 / ZERO_REFERENCE, 0.0], 3.0)
    assert peaks.max() == 3.0
