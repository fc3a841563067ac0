"""Targets that are a known function of the reference: its kind and its parameters are those that were put in."""

import numpy as np
import pytest

from tensortriage.compare.patterns.error_view import lay_out
from tensortriage.compare.patterns.value_relations import (
    constant,
    folded,
    linear,
    normalised_elsewhere,
    saturated,
    scaled_slices,
    zeroed,
)

RANDOM = np.random.default_rng(0)
ARRAY = RANDOM.standard_normal((8, 16, 10)).astype(np.float32)
SCORES = np.abs(RANDOM.standard_normal((12, 12)))
ROUNDED = (ARRAY * (1 + 1e-4 * RANDOM.standard_normal(ARRAY.shape))).astype(np.float32)


def pair(reference, target):
    return lay_out(np.asarray(reference), np.asarray(target), floor=1e-3)


@pytest.mark.parametrize(
    ("target", "slug", "factor", "offset"),
    [
        (ARRAY * np.float32(1.05), "scale", 1.05, 0.0),
        (ARRAY * 4, "scale", 4.0, 0.0),
        (-ARRAY, "sign", -1.0, 0.0),
        (ARRAY + np.float32(0.3), "offset", 1.0, 0.3),
        (ARRAY * 2 + np.float32(0.5), "scale", 2.0, 0.5),
    ],
)
def test_factor_and_offset(target, slug, factor, offset):
    found = linear(pair(ARRAY, target))
    assert found.slug == slug
    assert found.evidence["factor"] == pytest.approx(factor, rel=1e-5)
    assert found.evidence["offset"] == pytest.approx(offset, abs=1e-5)


def test_a_factor_that_is_a_power_of_two_is_said_to_be():
    assert linear(pair(ARRAY, ARRAY * 4)).sentence.endswith("(2**2)")


def test_a_factor_in_some_elements():
    some = np.zeros(ARRAY.shape, bool)
    some[3:5] = True
    target = np.where(some, ARRAY * np.float32(1.5), ARRAY)
    assert linear(pair(ARRAY, target)) is None
    found = linear(pair(ARRAY, target), some)
    assert found.evidence["factor"] == pytest.approx(1.5)
    assert found.sentence.startswith("in the wrong elements")


def test_booleans_exchanged():
    flags = ARRAY > 0
    assert linear(pair(flags, ~flags)).sentence == "true and false are exchanged"


def test_one_value_everywhere_or_along_an_axis():
    assert constant(pair(ARRAY, np.full_like(ARRAY, 0.25))).evidence == {"value": 0.25}
    along = np.broadcast_to(ARRAY[:, :1], ARRAY.shape)
    assert constant(pair(ARRAY, along)).evidence == {"axis": 1}
    assert constant(pair(np.ones((4, 4), np.float32), np.full((4, 4), 2, np.float32))) is None


def test_zeros_and_numbers_too_small_for_a_format():
    flushed = np.where(np.abs(ARRAY) < 0.5, np.float32(0), ARRAY)
    found, places = zeroed(pair(ARRAY, flushed))
    assert np.array_equal(places, (flushed == 0) & (ARRAY != 0))
    assert "flushed to zero" in found.sentence
    assert found.evidence["largest_lost"] == np.abs(ARRAY)[np.abs(ARRAY) < 0.5].max()
    tail = ARRAY.copy()
    tail[6:] = 0
    assert "25 % of the reference's non-zero elements" in zeroed(pair(ARRAY, tail))[0].sentence
    assert zeroed(pair(ARRAY, np.zeros_like(ARRAY)))[0].sentence.startswith("the target is zero everywhere")


@pytest.mark.parametrize(("sign", "words"), [(1, "become positive"), (-1, "become negative")])
def test_magnitudes_without_their_sign(sign, words):
    found = folded(pair(ARRAY, sign * np.abs(ARRAY)))
    assert words in found.sentence
    assert found.evidence["elements"] == np.count_nonzero(sign * ARRAY < 0)


def test_the_bound_of_a_format():
    wide = ARRAY * np.float32(5e4)
    found = saturated(pair(wide, np.clip(wide, -65504, 65504)))
    assert found.evidence["high"] == 65504
    assert found.evidence["above"] == np.count_nonzero(wide > 65504)
    assert "the largest float16 number" in found.sentence
    assert saturated(pair(wide, ROUNDED * np.float32(5e4))) is None


def test_slices_with_factors_or_offsets_of_their_own():
    factors = np.linspace(0.5, 2, 16, dtype=np.float32)[:, None]
    found = scaled_slices(pair(ARRAY, ARRAY * factors))
    assert (found.slug, found.evidence["axes"]) == ("slice-scale", [1])
    assert (found.evidence["lowest"], found.evidence["highest"]) == pytest.approx((0.5, 2.0), rel=1e-5)
    found = scaled_slices(pair(ARRAY, ARRAY + factors))
    assert (found.slug, found.evidence["axes"]) == ("slice-offset", [1])


def test_sums_that_are_one_along_the_other_axis():
    found = normalised_elsewhere(pair(SCORES / SCORES.sum(1, keepdims=True), SCORES / SCORES.sum(0, keepdims=True)))
    assert (found.evidence["right_axis"], found.evidence["axis_taken"]) == (1, 0)


def test_rounding_is_none_of_it():
    both = pair(ARRAY, ROUNDED)
    asked = (linear, constant, zeroed, folded, saturated, scaled_slices, normalised_elsewhere)
    assert [ask(both) for ask in asked] == [None] * len(asked)
