"""Weights that were smoothed before they were quantized, against quantized and other ones."""

import numpy as np

from tensortriage_quantize.inspection.smoothing import smoothing

RNG = np.random.default_rng(3)
W = RNG.standard_normal((16, 24)).astype(np.float32)
FACTORS = RNG.uniform(0.2, 4.0, (16, 1))


def in_8_bits(weight):
    scale = np.abs(weight).max() / 127
    return np.rint(weight / scale) * scale


def test_the_factors_are_found_through_the_rounding():
    np.testing.assert_allclose(smoothing(W, in_8_bits(W * FACTORS)), FACTORS, rtol=0.05)


def test_a_weight_that_was_only_quantized_was_not_smoothed():
    assert smoothing(W, in_8_bits(W)) is None


def test_other_weights_scales_and_shapes_are_no_smoothing():
    assert smoothing(W, RNG.standard_normal(W.shape)) is None
    assert smoothing(W, in_8_bits(2.0 * W)) is None  # one factor for all is a scale that is wrong
    assert smoothing(W, in_8_bits(W * FACTORS)[:8]) is None
    assert smoothing(W, in_8_bits(W * RNG.uniform(0.2, 4.0, (1, 24)))) is None
    assert smoothing(W, in_8_bits(-W * FACTORS)) is None
