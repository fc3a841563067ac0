"""Expected sums by hand: 255 * 127 + 255 * 127 = 64770, of which VPMADDUBSW keeps 32767."""

import numpy as np
import pytest

from tensortriage.compare.quantization.int16_sums import int16_sums, windows

LARGE = np.array([[127], [127]], np.int8)


def test_a_pair_that_does_not_fit():
    found = int16_sums(np.array([[255, 255]], np.uint8), 0, LARGE)
    assert (found.largest, found.saturated) == (64770.0, 1.0)
    assert found.error == pytest.approx((64770 - 32767) / 64770)


def test_signed_data_are_moved_up():
    found = int16_sums(np.array([[127, -128]], np.int8), 0, LARGE)
    assert (found.largest, found.saturated) == (255 * 127.0, 0.0)
    assert int16_sums(np.array([[127, 127]], np.int8), 0, LARGE).saturated == 1.0


def test_pairs_are_neighbours_and_a_last_one_stands_alone():
    weights = np.array([[127], [0], [127]], np.int8)
    found = int16_sums(np.full((1, 3), 255, np.uint8), 0, weights)
    assert (found.largest, found.saturated, found.error) == (255 * 127.0, 0.0, 0.0)


def test_signs_that_cancel_fit():
    assert int16_sums(np.array([[255, 255]], np.uint8), 0, np.array([[127], [-128]], np.int8)).saturated == 0.0


def test_weights_in_7_bits_always_fit():
    rng = np.random.default_rng(0)
    data = rng.integers(0, 256, (200, 64), np.uint8)
    data[0] = 255
    for weights in (rng.integers(-64, 65, (64, 8)).astype(np.int8), np.full((64, 1), -64, np.int8)):
        assert int16_sums(data, 0, weights).saturated == 0.0


def test_windows_are_what_a_convolution_sums_over():
    rng = np.random.default_rng(0)
    data, kernels = rng.integers(0, 9, (2, 3, 5, 4)), rng.integers(0, 9, (6, 3, 2, 2))
    rows = windows(data, (2, 2), 0)
    columns = np.moveaxis(kernels, 1, -1).reshape(6, -1).T
    expected = sum(
        np.einsum("nchw,kc->nhwk", data[:, :, y : y + 4, x : x + 3], kernels[:, :, y, x])
        for y in range(2)
        for x in range(2)
    )
    np.testing.assert_array_equal((rows @ columns).reshape(2, 4, 3, 6), expected)
