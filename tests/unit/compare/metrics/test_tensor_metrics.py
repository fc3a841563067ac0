"""Expected values: by hand where small, by numpy in float64 where large (test_metrics_properties covers the rest)."""

import math
import threading
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from tensortriage.compare.metrics import blocks, ulp
from tensortriage.compare.metrics.tensor_metrics import EXACT_ELEMENTS, WorstElement, measure, measure_many
from tensortriage.errors import DataError, UsageError
from tensortriage.values import serial

RNG = np.random.default_rng(7)
SEVERAL_BLOCKS = 5 * blocks.BLOCK // 2 + 17


def test_a_small_pair_by_hand():
    metrics = measure(np.float32([1, -2, 0, 4]), np.float32([1, -2.5, 0.25, 5]))
    assert metrics.count == metrics.compared == metrics.sampled == 4
    assert metrics.max_abs_error == 1.0
    assert metrics.mean_abs_error == 0.4375
    assert metrics.rms_error == math.sqrt((0.25 + 0.0625 + 1) / 4)
    assert metrics.l2_error == math.sqrt(1.3125)
    assert metrics.max_rel_error == pytest.approx(0.25 / 2.220446049250313e-16)
    assert metrics.reference_rms == math.sqrt(21 / 4)
    assert metrics.sqnr_db == pytest.approx(10 * math.log10(21 / 1.3125))
    assert metrics.cosine_similarity == pytest.approx((1 + 5 + 20) / math.sqrt(21 * 32.3125))
    assert (metrics.reference_max_abs, metrics.target_max_abs) == (4.0, 5.0)
    assert metrics.histogram == ((-2, 1), (-1, 1), (0, 1))
    assert metrics.median_abs_error == 0.375
    assert metrics.mismatches == 3
    assert metrics.worst == (
        WorstElement((3,), 4.0, 5.0),
        WorstElement((1,), -2.0, -2.5),
        WorstElement((2,), 0.0, 0.25),
    )


def test_nan_and_infinities_are_counted_and_hide_nothing():
    nan, inf = math.nan, math.inf
    metrics = measure(np.float32([1, nan, nan, inf, inf, -inf, 3]), np.float32([1.5, nan, 1, inf, -inf, 0, nan]))
    assert metrics.compared == 1
    assert (metrics.nan_reference, metrics.nan_target) == (2, 2)
    assert (metrics.inf_reference, metrics.inf_target) == (3, 2)
    assert metrics.nonfinite_mismatch == 4
    assert metrics.mismatches == 5
    assert metrics.max_abs_error == 0.5
    assert metrics.reference_max_abs == 3.0
    assert [element.index for element in metrics.worst] == [(2,), (4,), (5,), (6,), (0,)]
    assert metrics.has_nan


def test_with_nothing_to_compare_every_error_is_nan():
    metrics = measure(np.float32([math.nan, 1]), np.float32([1, math.inf]))
    for name in ("max_abs_error", "rms_error", "l2_error", "relative_rms_error", "cosine_similarity", "sqnr_db",
                 "max_ulp_error", "median_abs_error", "max_rel_error"):  # fmt: skip
        assert math.isnan(getattr(metrics, name)), name


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.float8_e5m2])
def test_without_a_finite_number_there_is_no_largest_magnitude(dtype):
    metrics = measure(np.array([math.nan, math.inf], dtype), np.array([1, -2], dtype))
    assert math.isnan(metrics.reference_max_abs)
    assert metrics.target_max_abs == 2.0


def test_an_empty_pair_is_equal():
    metrics = measure(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32))
    assert (metrics.count, metrics.sampled, metrics.mismatches, metrics.max_abs_error) == (0, 0, 0, 0.0)
    assert metrics.cosine_similarity == 1.0


@pytest.mark.parametrize(
    ("reference", "target", "error"),
    [
        (np.int64([2**62]), np.int64([-(2**62)]), 2.0**63),
        (np.int64([-(2**63)]), np.int64([2**63 - 1]), 2.0**64),
        (np.uint64([2**64 - 1]), np.uint64([0]), 2.0**64),
        (np.uint64([2**64 - 1]), np.int64([-(2**63)]), 2.0**64 + 2.0**63),
        (np.int64([2**60 + 1]), np.int64([2**60]), 1.0),
        (np.int32([-(2**31)]), np.int32([2**31 - 1]), 2.0**32 - 1),
        (np.uint8([3]), np.uint8([5]), 2.0),
        (np.array([True]), np.array([False]), 1.0),
        (np.int64([1]), np.array([True]), 0.0),
    ],
)  # fmt: skip
def test_integers_never_overflow(reference, target, error):
    metrics = measure(reference, target)
    assert metrics.max_abs_error == metrics.max_ulp_error == error
    assert metrics.exact


def test_strings_are_equal_or_not():
    metrics = measure(np.array([["a", "b"]], object), np.array([[b"a", "c"]], object))
    assert (metrics.mismatches, metrics.max_abs_error, metrics.rms_error) == (1, 1.0, math.sqrt(0.5))
    assert metrics.worst[0].index == (0, 1)
    assert metrics.exact


def test_complex_numbers_by_magnitude():
    metrics = measure(np.complex64([3 + 4j]), np.complex64([3 + 4j + (0.6 + 0.8j)]))
    assert metrics.max_abs_error == pytest.approx(1.0)
    assert metrics.max_rel_error == pytest.approx(0.2)
    assert metrics.cosine_similarity == pytest.approx(1.0)


def test_ulps_are_those_of_the_coarser_type():
    reference = np.float32([1.0, 1.0 + 2**-12])
    target = np.array([1.0, 1.0 + 2**-7], ml_dtypes.bfloat16)  # eps of bfloat16 is 2**-7.
    metrics = measure(reference, target)
    assert metrics.max_ulp_error == 1.0
    assert metrics.max_abs_error == 2**-7 - 2**-12


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_many_blocks_agree_with_numpy(dtype):
    reference = RNG.standard_normal(SEVERAL_BLOCKS).astype(dtype)
    target = (reference.astype(np.float64) * (1 + 1e-2 * RNG.standard_normal(SEVERAL_BLOCKS))).astype(dtype)
    ours, theirs = reference.astype(np.float64), target.astype(np.float64)
    errors = np.abs(theirs - ours)
    for workers in (1, 3):
        metrics = measure(reference, target, workers=workers)
        assert metrics.max_abs_error == pytest.approx(errors.max())
        assert metrics.mean_abs_error == pytest.approx(errors.mean())
        assert metrics.rms_error == pytest.approx(math.sqrt(np.mean(errors**2)))
        assert metrics.max_rel_error == pytest.approx((errors / np.abs(ours)).max())
        assert metrics.mean_rel_error == pytest.approx((errors / np.abs(ours)).mean())
        cosine = np.dot(ours, theirs) / np.linalg.norm(ours) / np.linalg.norm(theirs)
        assert 1 - metrics.cosine_similarity == pytest.approx(1 - cosine, rel=1e-4)
        assert metrics.mismatches == np.count_nonzero(errors)
        worst = np.argsort(-errors, kind="stable")[:5]
        assert [element.index[0] for element in metrics.worst] == worst.tolist()
        for share, value in ((0.5, metrics.median_abs_error), (0.99, metrics.p99_abs_error)):
            assert np.mean(errors < value) - 0.02 < share < np.mean(errors <= value) + 0.02  # A sample's quantile.
        assert EXACT_ELEMENTS / 2 < metrics.sampled <= SEVERAL_BLOCKS
        assert sum(count for _, count in metrics.histogram) <= metrics.sampled


def test_threads_change_nothing_but_the_order_of_sums():
    reference = RNG.standard_normal(20 * blocks.BLOCK, dtype=np.float32)
    target = reference + np.float32(1e-3)
    one, many = measure(reference, target, workers=1), measure(reference, target, workers=4)
    assert one.rms_error == pytest.approx(many.rms_error, rel=1e-12)
    assert (one.worst, one.histogram, one.mismatches) == (many.worst, many.histogram, many.mismatches)


@pytest.mark.parametrize("place", [0, blocks.BLOCK - 1, blocks.BLOCK, SEVERAL_BLOCKS - 1])
@pytest.mark.parametrize("value", [math.nan, 7.0])
def test_one_bad_element_is_found_wherever_it_is(place, value):
    reference = np.ones(SEVERAL_BLOCKS, np.float32)
    target = reference.copy()
    target[place] = value
    metrics = measure(reference, target)
    assert metrics.mismatches == 1
    assert metrics.worst[0].index == (place,)
    assert metrics.nan_target == math.isnan(value)


def test_masks_with_minus_infinity_and_with_the_lowest_float():
    reference = RNG.standard_normal(SEVERAL_BLOCKS, dtype=np.float32)
    for mask in (-np.inf, np.finfo(np.float32).min):
        reference[::3] = mask
        target = reference.copy()
        target[1::3] += np.float32(0.5)
        metrics = measure(reference, target)
        assert metrics.nonfinite_mismatch == 0
        assert metrics.max_abs_error == pytest.approx(0.5, rel=1e-6)
        assert metrics.mismatches == len(target[1::3])


def test_errors_far_below_the_square_root_of_the_range_count():
    reference = np.full(SEVERAL_BLOCKS, 1e-30, np.float32)  # Squares vanish in float32.
    metrics = measure(reference, reference * np.float32(1.5))
    assert metrics.rms_error == pytest.approx(0.5e-30, rel=1e-6)
    assert metrics.relative_rms_error == pytest.approx(0.5, rel=1e-6)


def test_errors_beyond_the_range_of_float32_count():
    largest = np.finfo(np.float32).max
    metrics = measure(np.float32([largest]), np.float32([-largest]))
    assert metrics.max_abs_error == 2 * float(largest)
    assert metrics.nonfinite_mismatch == 0


def test_layouts_make_no_difference():
    reference = RNG.standard_normal((40, 50, 60), dtype=np.float32)
    target = reference + np.float32(0.25) * (reference > 1)
    expected = measure(reference, target)
    for layout in (np.asfortranarray, lambda a: a[::-1].copy()[::-1], lambda a: a.astype(">f4"), unaligned):
        metrics = measure(layout(reference), layout(target))
        assert (metrics.worst, metrics.mismatches) == (expected.worst, expected.mismatches)
        assert metrics.rms_error == pytest.approx(expected.rms_error, rel=1e-12)
    strided = measure(reference[:, ::3, 1:], target[:, ::3, 1:])
    assert strided.mismatches == np.count_nonzero(reference[:, ::3, 1:] > 1)


def unaligned(array):
    buffer = np.empty(array.nbytes + 1, np.uint8)
    view = buffer[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def test_memory_mapped_arrays(tmp_path):
    array = RNG.standard_normal(1000, dtype=np.float32)
    array.tofile(tmp_path / "a.bin")
    mapped = np.memmap(tmp_path / "a.bin", np.float32, "r")
    assert measure(mapped, array).mismatches == 0


def test_quantiles_are_exact_up_to_their_limit():
    errors = RNG.permutation(EXACT_ELEMENTS).astype(np.float64)
    metrics = measure(np.zeros(EXACT_ELEMENTS), errors)
    assert metrics.median_abs_error == np.median(errors)
    assert metrics.p99_abs_error == pytest.approx(np.quantile(errors, 0.99))
    assert metrics.sampled == EXACT_ELEMENTS


def test_a_sample_does_not_stick_to_one_channel():
    channels = 512
    errors = np.zeros((20_000, channels), np.float32)
    errors[:, 0] = 1.0
    assert measure(np.zeros_like(errors), errors).p99_abs_error == 0.0
    assert measure(np.zeros_like(errors), 1 - errors).p90_abs_error == 1.0


def test_the_result_survives_a_file():
    metrics = measure(np.float32([1, math.nan]), np.float32([2, 1]))
    again = serial.from_json(serial.to_json(metrics), type(metrics))
    assert serial.to_json(again) == serial.to_json(metrics)


def test_different_shapes_are_refused():
    with pytest.raises(DataError) as caught:
        measure(np.zeros((2, 3)), np.zeros((3, 2)))
    assert caught.value.slug == "shape-mismatch"


def test_strings_against_numbers_are_refused():
    with pytest.raises(DataError) as caught:
        measure(np.array(["1"]), np.array([1]))
    assert caught.value.slug == "dtype-mismatch"


def test_types_that_onnx_lacks_are_refused():
    with pytest.raises(UsageError):
        measure(np.zeros(1, "datetime64[s]"), np.zeros(1, "datetime64[s]"))


def test_many_pairs_come_back_in_order():
    pairs = []
    for index, size in enumerate([3, 100_000, 0, 17 * blocks.BLOCK, 5] * 3):
        reference = np.full(size, index, np.float32)
        pairs.append((str(index), reference, reference + np.float32(index)))
    found = list(measure_many(pairs, workers=3))
    assert [name for name, _ in found] == [name for name, _, _ in pairs]
    assert [metrics.max_abs_error for _, metrics in found] == [float(len(p[1]) and int(p[0])) for p in pairs]


def test_many_pairs_are_not_taken_far_ahead():
    taken = []

    def pairs():
        for index in range(200):
            taken.append(index)
            yield str(index), np.zeros(2**20, np.float32), np.zeros(2**20, np.float32)

    stream = measure_many(pairs(), workers=2)
    next(stream)
    assert len(taken) < 20
    stream.close()


def test_a_bad_pair_is_named():
    with pytest.raises(DataError, match="'second'"):
        list(measure_many([("first", np.zeros(1), np.zeros(1)), ("second", np.zeros(1), np.zeros(2))]))


def test_no_thread_is_left_behind():
    before = threading.active_count()
    measure(np.zeros(40 * blocks.BLOCK), np.ones(40 * blocks.BLOCK), workers=4)
    assert threading.active_count() == before


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_no_temporary_is_as_large_as_a_tensor(layout):
    reference = layout(RNG.standard_normal((2048, 4096), dtype=np.float32))
    target = reference * np.float32(1.5)
    measure(reference[:64], target[:64])  # Makes the buffers of this thread, and the pages of the code.
    tracemalloc.start()
    measure(reference, target, workers=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < reference.nbytes / 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("zeros", [2, 0.5])
@pytest.mark.parametrize("wrong", [True, False])
def test_errors_at_zeros_of_the_reference_are_relative_to_epsilon(dtype, zeros, wrong):
    reference = (1 + RNG.random(SEVERAL_BLOCKS)).astype(dtype)
    places = RNG.choice(SEVERAL_BLOCKS, int(zeros * SEVERAL_BLOCKS) if zeros < 1 else zeros, replace=False)
    reference[places] = 0
    target = (reference * 1.25).astype(dtype)
    target[places[:2]] = 0.5 if wrong else 0.0
    ours, errors = reference.astype(np.float64), np.abs(target.astype(np.float64) - reference)
    relative = errors / np.where(ours == 0, np.finfo(np.float64).eps, np.abs(ours))
    metrics = measure(reference, target)
    assert metrics.max_rel_error == pytest.approx(relative.max(), rel=1e-6)
    assert metrics.mean_rel_error == pytest.approx(relative.mean(), rel=1e-6)
    assert metrics.max_ulp_error == ulp.max_distance(reference, target, np.dtype(dtype))


def test_halves_that_are_not_finite_are_counted_beside_the_largest_finite_one():
    reference = np.full(SEVERAL_BLOCKS, 65504, np.float16)
    target = reference.copy()
    reference[3], target[4], target[5], reference[-1] = np.inf, -np.inf, np.nan, 6e-8
    metrics = measure(reference, target)
    assert (metrics.inf_reference, metrics.inf_target, metrics.nan_target, metrics.nan_reference) == (1, 1, 1, 0)
    assert (metrics.nonfinite_mismatch, metrics.mismatches) == (3, 4)
    assert metrics.reference_max_abs == metrics.target_max_abs == 65504
    assert metrics.max_abs_error == np.float32(65504) - np.float32(6e-8)
