import math

import numpy as np
import pytest

from tensortriage.compare.metrics import blocks, limit_counts

RNG = np.random.default_rng(5)


def test_counting_over_many_blocks_agrees_with_numpy():
    size = 2 * blocks.BLOCK + 5
    reference = RNG.standard_normal(size, dtype=np.float32)
    target = reference + np.float32(1e-3) * RNG.standard_normal(size, dtype=np.float32)
    absolute = np.abs(target - reference)
    expected = np.count_nonzero((absolute > np.float32(1e-3)) & (absolute / np.abs(reference) > np.float32(1e-3)))
    assert 0 < expected < size
    assert limit_counts.errors_against(reference, target, atol=1e-3, rtol=1e-3).outside == expected


def test_layouts_and_views_make_no_difference():
    reference = RNG.standard_normal((30, 40))
    target = reference + 1e-3 * RNG.standard_normal((30, 40))
    expected = limit_counts.errors_against(reference, target, atol=1e-3, rtol=0)
    found = limit_counts.errors_against(np.asfortranarray(reference), np.asfortranarray(target), atol=1e-3, rtol=0)
    assert found.outside == expected.outside > 0
    assert found.mean_abs == pytest.approx(expected.mean_abs)


def test_the_statistics_by_hand():
    errors = limit_counts.errors_against(np.float64([1, 2, 0, 4]), np.float64([1, 3, 1, 4]), atol=0.5, rtol=0.5)
    assert errors.max_abs == 1.0
    assert errors.mean_abs == 0.5
    assert errors.max_rel == 1 / 2.220446049250313e-16
    assert errors.outside == 1  # The second element is within by its relative error, at the limit.
    assert errors.ratio == 2.0


def test_a_nan_makes_statistics_nan_and_counts_as_outside():
    errors = limit_counts.errors_against(np.float32([1, math.nan]), np.float32([1, 1]), atol=1e9, rtol=1e9)
    assert errors.outside == 1
    assert errors.ratio == math.inf
    assert math.isnan(errors.max_abs)
    assert math.isnan(errors.mean_rel)


def test_an_integer_reference_of_zero_has_no_relative_error():
    errors = limit_counts.errors_against(np.int32([0, 5]), np.int32([1, 5]), atol=0, rtol=1e9)
    assert errors.max_rel == math.inf
    assert errors.outside == 1


def test_quantiles_and_the_median_are_numpys():
    reference, target = RNG.standard_normal(999), RNG.standard_normal(999)
    absolute = np.abs(target - reference)
    assert limit_counts.quantiles_of(reference, target, share=0.9)[0] == np.quantile(absolute, 0.9)
    assert limit_counts.quantiles_of(reference, target, share=None)[1] == np.median(absolute / np.abs(reference))
