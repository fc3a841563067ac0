"""Expected distances: numpy.nextafter, applied as often as the distance says."""

import ml_dtypes
import numpy as np
import pytest

from tensortriage.compare.metrics import blocks, ulp
from tensortriage.compare.metrics.tensor_metrics import measure


def after(value, steps, dtype):
    for _ in range(abs(steps)):
        value = np.nextafter(value, dtype(np.inf if steps > 0 else -np.inf))
    return value


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("start", [0.0, -0.0, 1.0, -1.0, 3.5, 2.0**-14, -(2.0**-14), 1e-40, 60000.0])
@pytest.mark.parametrize("steps", [0, 1, -1, 2, -5])
def test_distances_by_counting(dtype, start, steps):
    start = dtype(start)
    pair = np.array([start]), np.array([after(start, steps, dtype)])
    assert ulp.max_distance(*pair, np.dtype(dtype)) == abs(steps)
    assert measure(*pair).max_ulp_error == abs(steps)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_distance_across_zero_is_the_sum_of_both_sides(dtype):
    tiny = np.nextafter(dtype(0), dtype(1))
    assert measure(np.array([-3 * tiny]), np.array([2 * tiny])).max_ulp_error == 5


def test_the_whole_range_of_each_type_fits():
    for dtype, bits in ((np.float32, 32), (np.float64, 64)):
        largest = np.finfo(dtype).max
        steps = 2.0 * (2.0 ** (bits - 1) - 2.0 ** np.finfo(dtype).nmant - 1)  # Finite numbers below and above zero.
        assert measure(np.array([-largest]), np.array([largest])).max_ulp_error == steps


def test_equal_zeros_of_different_sign_are_no_distance_apart():
    assert measure(np.float32([0.0]), np.float32([-0.0])).max_ulp_error == 0


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (np.float16, np.float32, np.float16),
        (np.float64, np.float32, np.float32),
        (np.float16, ml_dtypes.bfloat16, ml_dtypes.bfloat16),
        (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2),
        (np.int32, np.float32, np.float32),
        (np.complex64, np.complex128, np.float32),
        (np.int8, np.bool_, None),
    ],
)
def test_the_coarser_type(one, other, expected):
    for pair in ((one, other), (other, one)):
        assert ulp.coarser(*map(np.dtype, pair)) == (None if expected is None else np.dtype(expected))


def test_values_out_of_the_coarser_range_count_as_its_largest():
    target = np.array([np.finfo(np.float16).max])
    assert measure(np.float32([1e30]), target.astype(np.float16)).max_ulp_error == 0


@pytest.mark.parametrize("noise", [1e-7, 1e-3, 0.3, 10.0, 1e20])
@pytest.mark.parametrize("zeros", [False, True])
def test_the_short_cut_for_blocks_finds_the_same_maximum(noise, zeros):
    rng = np.random.default_rng(3)
    reference = rng.standard_normal(50_000).astype(np.float32)
    if zeros:
        reference[::7] = 0
    target = (reference + noise * rng.standard_normal(50_000) * rng.random(50_000) ** 8).astype(np.float32)
    assert measure(reference, target).max_ulp_error == ulp.max_distance(reference, target, np.dtype(np.float32))


FORMATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("dtypes", [*((dtype, dtype) for dtype in FORMATS), (np.float32, np.float16)])
@pytest.mark.parametrize("noise", [1e-3, 3.0])
@pytest.mark.parametrize("least", [-1.0, -30.0])
def test_what_is_known_of_earlier_blocks_hides_nothing_in_later_ones(dtypes, noise, least):
    rng = np.random.default_rng(4)
    size = 3 * blocks.BLOCK
    scales = 2.0 ** rng.integers(least, 1, size)  # Down to subnormal numbers of float16.
    reference = rng.standard_normal(size) * scales
    reference[rng.random(size) < 0.1] = 0.0
    target = reference * (1 + noise * rng.standard_normal(size)) + 1e-3 * scales * rng.standard_normal(size)
    for ascending in (1, -1):  # Each block is further than those before it, or nearer.
        order = np.sort(np.abs(target - reference).reshape(3, -1).max(axis=1)).argsort()[::ascending]
        pair = [side.reshape(3, -1)[order].reshape(-1) for side in (reference, target)]
        pair = [side.astype(dtype) for side, dtype in zip(pair, dtypes, strict=True)]
        unit = ulp.coarser(pair[0].dtype, pair[1].dtype)
        assert measure(*pair, workers=1).max_ulp_error == ulp.max_distance(*pair, unit)


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_lone_opposite_sign_in_a_later_block_is_found(dtype):
    reference = np.ones(2 * blocks.BLOCK, np.float32).astype(dtype)
    target = reference.copy()
    for place, value in ((5, -0.5), (blocks.BLOCK + 7, -1.5)):
        target[place] = value
    distance = ulp.max_distance(reference, target, np.dtype(dtype))
    assert distance > ulp.max_distance(reference[:9], target[:9], np.dtype(dtype))
    assert measure(reference, target, workers=1).max_ulp_error == distance
