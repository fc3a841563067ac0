"""Scales of blocks that are wrong in a known way; right ones are those that the formats define."""

import numpy as np
import pytest

from tensortriage.values.block_format import BLOCK_FORMATS
from tensortriage.values.dtype import DType, Precision
from tensortriage_quantize.inspection.block_fit import Blocks, fit_blocks

BLOCK = 32
NUMBERS = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32) * np.exp2(
    np.random.default_rng(1).integers(-4, 4, (64, 1))
).astype(np.float32)
LARGEST = np.abs(NUMBERS.reshape(64, 2, BLOCK)).max(axis=2)
POWERS = BLOCK_FORMATS[Precision.MXFP4].scales(LARGEST)


def fit(scale, numbers=NUMBERS, *, axis=1, dtype=DType.FLOAT4E2M1, block=BLOCK):
    return fit_blocks(numbers, np.asarray(scale), None, shape=NUMBERS.shape, blocks=Blocks(axis, block, dtype))


@pytest.mark.parametrize("numbers", [NUMBERS, None], ids=["known", "unknown"])
def test_scales_of_mx_fit(numbers):
    assert fit(POWERS, numbers).kind == "fits"
    assert fit(POWERS.astype(DType.FLOAT8E8M0.numpy), numbers).kind == "fits"


@pytest.mark.parametrize("numbers", [NUMBERS, None], ids=["known", "unknown"])
def test_scales_that_were_never_set(numbers):
    assert fit(np.ones_like(POWERS), numbers).kind == "scale-unset"


@pytest.mark.parametrize("numbers", [NUMBERS, None], ids=["known", "unknown"])
def test_scales_that_e8m0_cannot_hold(numbers):
    found = fit(LARGEST / 6, numbers)
    assert found.kind == "scale-unrounded"
    assert "powers of two" in found.words


def test_other_formats_need_no_powers_of_two():
    assert fit(LARGEST / 127, dtype=DType.INT8).kind == "fits"
    sixteen = np.abs(NUMBERS.reshape(64, 4, 16)).max(axis=2) / 6
    assert fit(sixteen, block=16).kind == "fits"


def test_scales_that_divide_where_they_should_multiply():
    assert fit(1 / POWERS).kind == "scale-inverted"


def test_scales_of_another_axis():
    other = np.abs(NUMBERS.reshape(2, BLOCK, 64)).max(axis=1)
    found = fit(np.ascontiguousarray(BLOCK_FORMATS[Precision.MXFP4].scales(other).T))
    assert found.kind in ("axis", "order")
    turned = fit_blocks(
        np.ascontiguousarray(NUMBERS.T), POWERS.reshape(64, 2), None, shape=(64, 64),
        blocks=Blocks(1, BLOCK, DType.FLOAT4E2M1),
    )  # fmt: skip
    assert turned.kind == "axis"
    assert "axis 0" in turned.words


def test_scales_in_transposed_order():
    shuffled = np.ascontiguousarray(POWERS.T).reshape(POWERS.shape)
    assert fit(shuffled).kind == "order"


def test_scales_of_another_shape():
    found = fit(POWERS[:, :1])
    assert found.kind == "scale-shape"
    assert "[64, 2]" in found.words


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_scales_that_are_no_positive_numbers(bad):
    wrong = POWERS.copy()
    wrong[3, 1] = bad
    assert fit(wrong).kind == "scale-not-positive"


@pytest.mark.parametrize(("factor", "kind"), [(1 / 16, "scale-too-small"), (16.0, "scale-too-large")])
def test_scales_that_are_off_by_a_factor(factor, kind):
    assert fit(POWERS * factor).kind == kind


SHIFTED = NUMBERS + 0.5 * LARGEST.repeat(BLOCK, axis=1)
LOW, HIGH = (np.minimum(SHIFTED.reshape(64, 2, BLOCK).min(axis=2), 0), SHIFTED.reshape(64, 2, BLOCK).max(axis=2))
STEPS = (HIGH - LOW) / 15
ZEROS = np.rint(-LOW / STEPS)


@pytest.mark.parametrize(
    ("scale", "zeros", "kind"),
    [
        (STEPS, ZEROS, "fits"),
        (np.ones_like(STEPS), ZEROS, "scale-unset"),
        (1 / STEPS, ZEROS, "scale-inverted"),
        (STEPS * 8, ZEROS, "scale-too-large"),
        (STEPS / 4, ZEROS, "scale-too-small"),
        (STEPS, 15 - ZEROS, "zero-point"),
        (STEPS, np.zeros_like(ZEROS), "zero-point"),
        (np.ascontiguousarray(STEPS.T).reshape(STEPS.shape), ZEROS, "order"),
        (STEPS, ZEROS[:1], "zero-point"),
    ],
)
def test_scales_with_zero_points(scale, zeros, kind):
    found = fit_blocks(SHIFTED, scale, zeros, shape=SHIFTED.shape, blocks=Blocks(1, BLOCK, DType.UINT4))
    assert found.kind == kind
    assert bool(found.words) is (kind != "fits")


def test_scales_that_were_broadcast_from_fewer():
    found = fit(np.repeat(POWERS[:1], len(POWERS), axis=0))
    assert found.kind == "scale-repeated"
    assert "along axis 0" in found.words


def test_scales_of_other_numbers_are_not_called_too_large():
    found = fit(np.random.default_rng(5).permutation(POWERS.ravel()).reshape(POWERS.shape))
    assert found.kind == "scale-unfit"
    assert (found.error or 0.0) > 2 * (found.best_error or 1.0)
