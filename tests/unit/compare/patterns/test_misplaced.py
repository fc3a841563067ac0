"""Elements that were moved in a known way are found in that way, and in no other."""

import numpy as np
import pytest

from tensortriage.compare.patterns.error_view import lay_out
from tensortriage.compare.patterns.misplaced import (
    Probe,
    axis_orders,
    inverse,
    reversed_order,
    shifted,
    stale,
    transposed,
)
from tensortriage.compare.patterns.reordered import permuted, reordered

RANDOM = np.random.default_rng(0)
ARRAY = RANDOM.standard_normal((6, 8, 10)).astype(np.float32)
LARGE = RANDOM.standard_normal((40, 32, 32)).astype(np.float32)  # of which only some places are looked at
SQUARE = RANDOM.standard_normal((12, 12)).astype(np.float32)


def pair(reference, target):
    return lay_out(np.ascontiguousarray(reference), np.ascontiguousarray(target), floor=0.0)


def probe(reference, target):
    return Probe.of(pair(reference, target))


@pytest.mark.parametrize("array", [ARRAY, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(("axis", "step"), [(0, 1), (1, -1), (2, 3)])
def test_a_shift_along_an_axis_that_wraps_around(array, axis, step):
    found = shifted(probe(array, np.roll(array, step, axis)))
    assert (found.slug, found.evidence["axis"], found.evidence["step"]) == ("shift", axis, step)
    assert found.evidence["wraps"]
    assert ("before it" if step > 0 else "after it") in found.sentence


def test_a_shift_in_memory_goes_across_rows():
    found = shifted(probe(ARRAY, np.roll(ARRAY.reshape(-1), 1).reshape(ARRAY.shape)))
    assert (found.evidence["axis"], found.evidence["step"]) == (None, 1)


def test_a_shift_that_begins_with_something_else_does_not_wrap():
    target = np.roll(ARRAY, 1, 0)
    target[0] = 0.0
    found = shifted(probe(ARRAY, target))
    assert (found.evidence["axis"], found.evidence["step"], found.evidence["wraps"]) == (0, 1, False)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_axis_backwards(axis):
    found = reversed_order(probe(ARRAY, np.flip(ARRAY, axis)))
    assert (found.evidence["axis"], found.evidence["reversed"]) == (axis, True)


def test_two_axes_swapped_under_the_same_shape():
    found = transposed(probe(SQUARE, SQUARE.T))
    assert (found.slug, found.evidence["axes"]) == ("transposition", [1, 0])
    assert "axes 0 and 1 are swapped" in found.sentence


def test_another_memory_order_under_the_shape_of_the_original():
    image = RANDOM.standard_normal((2, 3, 4, 5)).astype(np.float32)
    found = transposed(probe(image, image.transpose(0, 2, 3, 1).reshape(image.shape)))
    assert found.slug == "layout"
    assert "NHWC data read as NCHW" in found.sentence


def test_another_tensor_in_the_wrong_elements():
    other, target = RANDOM.standard_normal(ARRAY.shape).astype(np.float32), ARRAY.copy()
    target[4:] = other[4:]
    found = stale(pair(ARRAY, target), {"far": np.zeros((2, 2), np.float32), "other": other})
    assert found.evidence["tensor"] == "other"
    assert "the wrong elements equal tensor 'other'" in found.sentence
    assert "the target equals tensor 'other'" in stale(pair(ARRAY, other), {"other": other}).sentence


def test_rounding_is_no_movement():
    rounded = (ARRAY * (1 + 1e-3 * RANDOM.standard_normal(ARRAY.shape))).astype(np.float32)
    one, both = probe(ARRAY, rounded), pair(ARRAY, rounded)
    assert [shifted(one), reversed_order(one), transposed(one), reordered(both), permuted(both)] == [None] * 5
    assert stale(both, {"other": RANDOM.standard_normal(ARRAY.shape)}) is None


def test_orders_of_axes():
    assert list(axis_orders((2, 1, 3))) == [(2, 1, 0)]  # an axis of size 1 moves nothing
    assert len(list(axis_orders((2, 3, 4, 5, 6)))) == 119  # 5! - 1
    assert {inverse(inverse(axes)) for axes in axis_orders((2, 3, 4))} == set(axis_orders((2, 3, 4)))
    assert inverse((0, 2, 3, 1)) == (0, 3, 1, 2)


def test_a_decision_that_falls_the_other_way_is_no_movement():
    """The first of eight fives becomes the one before it: any other one would be as good a source."""
    steps = np.repeat([1.0, 5.0], 8).reshape(16, 1)
    other = steps.copy()
    other[8] = 1.0
    assert shifted(probe(steps, other)) is None
    labels = RANDOM.integers(0, 4, 60)
    assert shifted(probe(labels, np.roll(labels, 1))).slug == "shift"  # of about 45, each with odds of four to one
