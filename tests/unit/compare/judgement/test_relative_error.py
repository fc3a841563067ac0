import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.compare.judgement.relative_error import decibels, error_of, least_floor, ratio_of, say_gap
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.values.dtype import Precision


def test_the_error_of_equal_tensors_is_zero_and_of_empty_ones_too():
    x = np.float32([1, 2, 3])
    assert error_of(measure(x, x)) == 0.0
    assert error_of(measure(x[:0], x[:0])) == 0.0


def test_a_new_nan_makes_the_error_infinite_but_a_shared_one_does_not():
    x = np.float32([1, np.nan, np.inf])
    y = np.float32([1, np.nan, np.inf])
    assert error_of(measure(x, y)) == 0.0
    y[0] = np.nan
    assert error_of(measure(x, y)) == math.inf


def test_all_masked_tensors_are_equal():
    x = np.full(8, -np.inf, np.float32)
    assert error_of(measure(x, x.copy())) == 0.0


def test_an_error_against_zero_is_infinite():
    assert error_of(measure(np.zeros(3, np.float32), np.float32([0, 0, 1]))) == math.inf


def test_exact_types_count_unequal_elements():
    assert error_of(measure(np.int64([1, 2, 3, 4]), np.int64([1, 2, 3, 5]))) == 0.25


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [
        (Precision.FP16, np.float16),
        (Precision.BF16, ml_dtypes.bfloat16),
        (Precision.FP8E4M3, ml_dtypes.float8_e4m3fn),
        (Precision.FP8E5M2, ml_dtypes.float8_e5m2),
    ],
)
def test_the_least_floor_is_what_rounding_once_really_costs(precision, dtype):
    # Expected: measured here on a million log-uniform numbers, the distribution that the formula assumes: the rms of
    # the relative errors, element by element.
    x = (2.0 ** np.random.default_rng(0).uniform(-3, 3, 1_000_000)).astype(np.float32)
    relative = (x.astype(dtype).astype(np.float32) - x) / x
    measured = float(np.sqrt(np.mean(relative.astype(np.float64) ** 2)))
    assert least_floor(precision) == pytest.approx(measured, rel=0.02)


@given(st.floats(min_value=1e-30, max_value=1e30))
def test_decibels_invert(ratio):
    assert 10 ** (decibels(ratio) / 20) == pytest.approx(ratio)


def test_ratios_are_honest_about_what_was_not_measured():
    assert ratio_of(None, 1.0) is None
    assert ratio_of(1.0, None) is None
    assert ratio_of(0.0, 0.0) == 0.0
    assert ratio_of(1.0, 0.0) == math.inf


def test_a_gap_that_rounds_to_nothing_has_no_minus():
    assert [say_gap(level) for level in (-0.04, 0.04, -1.26, math.inf)] == ["+0.0 dB", "+0.0 dB", "-1.3 dB", "+inf dB"]
