"""Formats of blocks against the OCP MX specification 1.0 (worked by hand, number by number) and against ml_dtypes."""

import math

import ml_dtypes
import numpy as np
import pytest

from tensortriage.values.block_format import BLOCK_FORMATS
from tensortriage.values.dtype import Precision

MX = [precision for precision in BLOCK_FORMATS if precision is not Precision.NVFP4]
EMAX = {"mxfp8e4m3": 8, "mxfp8e5m2": 15, "mxfp6e2m3": 2, "mxfp6e3m2": 4, "mxfp4": 2, "nvfp4": 2}
"""Table 1 of the specification."""


def by_the_specification(block, precision):
    """One block as section 6.3 of the MX specification converts it, in Python's own arithmetic."""
    element = BLOCK_FORMATS[precision].element
    largest = max(abs(float(x)) for x in block)
    if not largest:
        return [0.0] * len(block)
    exponent = math.floor(math.log2(largest))
    exponent += (2.0 ** (exponent + 1) <= largest) - (2.0**exponent > largest)  # log2 rounds near powers of two
    scale = 2.0 ** max(-127, min(127, exponent - EMAX[precision.value]))
    codes = np.arange(1 << (8 if "8" in element.name.split("_")[0] else int(element.name[5])), dtype=np.uint8)
    numbers = [float(x) for x in codes.view(element) if math.isfinite(float(x))]
    return [scale * nearest(float(x) / scale, numbers) for x in block]


def nearest(x, numbers):
    """The nearest of some numbers; of two as near, the one whose code is even: an even multiple of their distance."""
    limited = max(min(numbers), min(max(numbers), x))
    distance = min(abs(number - limited) for number in numbers)
    near = sorted({number for number in numbers if abs(number - limited) == distance})
    if len(near) == 1:
        return near[0]
    step = near[1] - near[0]
    return next(number for number in near if (number / step) % 2 == 0)


@pytest.mark.parametrize("precision", BLOCK_FORMATS, ids=lambda precision: precision.value)
def test_the_largest_exponent_is_that_of_the_specification(precision):
    assert BLOCK_FORMATS[precision].largest_exponent == EMAX[precision.value]


@pytest.mark.parametrize("precision", MX, ids=lambda precision: precision.value)
def test_blocks_are_those_of_the_specification_bit_for_bit(precision):
    rng = np.random.default_rng(3)
    blocks = rng.standard_normal((40, 32)).astype(np.float32) * np.exp2(rng.integers(-40, 40, (40, 1))).astype(
        np.float32
    )
    blocks[0], blocks[1, 0], blocks[2] = 0.0, 1e38, np.exp2(np.arange(32) - 16.0)
    blocks[3] = np.linspace(-6, 6, 32)  # ties of FP4
    blocks[4] = np.float32(1e-42)  # a subnormal of float32: its scale is the smallest
    expected = np.array([by_the_specification(block, precision) for block in blocks], np.float32)
    np.testing.assert_array_equal(BLOCK_FORMATS[precision].rounded(blocks, -1), expected)


@pytest.mark.parametrize("precision", MX, ids=lambda precision: precision.value)
def test_scales_are_powers_of_two_that_e8m0_holds(precision):
    largest = np.float32([1.0, 1.999, 2.0, 3e38, 1e-45, 0.0])
    scales = BLOCK_FORMATS[precision].scales(largest)
    held = scales.astype(np.float32).astype(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    np.testing.assert_array_equal(held, scales)
    assert scales[0] == scales[1] == scales[2] / 2 == 2.0 ** -EMAX[precision.value]


@pytest.mark.parametrize("precision", BLOCK_FORMATS, ids=lambda precision: precision.value)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_blocks_lie_along_the_axis_and_the_last_may_be_short(precision, axis):
    x = np.random.default_rng(1).standard_normal((37, 5, 50)).astype(np.float32)
    turned = BLOCK_FORMATS[precision].rounded(np.moveaxis(x, axis, -1), -1)
    np.testing.assert_array_equal(BLOCK_FORMATS[precision].rounded(x, axis), np.moveaxis(turned, -1, axis))
    short = np.zeros((1, 3), np.float32)
    assert BLOCK_FORMATS[precision].rounded(short, 1).shape == (1, 3)
    assert BLOCK_FORMATS[precision].rounded(np.zeros((0, 3)), 1).shape == (0, 3)


@pytest.mark.parametrize("precision", BLOCK_FORMATS, ids=lambda precision: precision.value)
def test_numbers_of_the_format_stay(precision):
    rng = np.random.default_rng(2)
    once = BLOCK_FORMATS[precision].rounded(rng.standard_normal((4, 64)).astype(np.float32), 1)
    if precision is not Precision.NVFP4:  # whose scale of the tensor follows from its largest number
        np.testing.assert_array_equal(BLOCK_FORMATS[precision].rounded(once, 1), once)
    assert BLOCK_FORMATS[precision].rounded(once.astype(np.float64), 1).dtype == np.float64


def test_nvfp4_has_an_e4m3_scale_per_16_and_a_float32_scale_per_tensor():
    """``s = amax / (448 * 6)``, a block's scale ``e4m3(amax_block / 6 / s)``, elements ``e2m1(x / (scale * s))``."""
    x = np.random.default_rng(4).standard_normal((3, 48)).astype(np.float32)
    tensor = np.float32(np.abs(x).max() / np.float32(448 * 6))
    expected = np.empty_like(x)
    for row in range(3):
        for start in range(0, 48, 16):
            block = x[row, start : start + 16]
            scale = (np.abs(block).max() / np.float32(6) / tensor).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
            elements = np.clip(block / (scale * tensor), -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
            expected[row, start : start + 16] = elements * (scale * tensor)
    np.testing.assert_array_equal(BLOCK_FORMATS[Precision.NVFP4].rounded(x, 1), expected)


@pytest.mark.parametrize("precision", BLOCK_FORMATS, ids=lambda precision: precision.value)
def test_a_block_with_what_is_no_number_is_none(precision):
    x = np.ones((2, 32), np.float32)
    x[0, 3], x[1, 30] = np.nan, np.inf
    rounded = BLOCK_FORMATS[precision].rounded(x, 1)
    block = BLOCK_FORMATS[precision].block
    assert np.isnan(rounded[0, :block]).all()
    assert np.isnan(rounded[1, -block:]).all()
    if block == 16:
        np.testing.assert_array_equal(rounded[0, 16:], 1)
