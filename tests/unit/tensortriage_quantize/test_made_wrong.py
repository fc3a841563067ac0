"""What was done to integers and scales; they are made here by what is to be told."""

import numpy as np
import pytest

from tensortriage_quantize.made_wrong import StoredInteger, prepared, wrong_integers, wrong_scale

WEIGHT = np.random.default_rng(5).standard_normal((8, 12, 3, 3)) * np.linspace(0.5, 2, 8).reshape(8, 1, 1, 1)
SCALES = np.abs(WEIGHT).max((1, 2, 3)) / 127


def stored(rounding=np.rint, *, was=WEIGHT, scale=SCALES, made_of=None, kept=None, zero=0):
    """Return a weight whose integers are rounded by a function, with scales that are kept or others."""
    steps = (was if made_of is None else made_of) / scale.reshape(-1, 1, 1, 1) + zero
    integers = np.clip(rounding(steps), -128, 127).astype(np.int8)
    return StoredInteger(was, integers, scale if kept is None else kept, np.full(1, float(zero)), 0)


STEP = np.abs(WEIGHT).max() / 7
WRONG = {
    "is rounded down instead of to the nearest integer": stored(np.floor),
    "is rounded up instead of to the nearest integer": stored(np.ceil),
    "is rounded towards 0 instead of to the nearest integer": stored(np.trunc),
    "takes 14 different numbers of a channel: it was rounded to 4 bits before": stored(
        made_of=np.rint(WEIGHT / STEP) * STEP
    ),
    "has the scales of its channels moved by 1 along axis 0": stored(kept=np.roll(SCALES, 1)),
    "has the scales of its channels in another order along axis 0": stored(kept=SCALES[::-1]),
    "is 0 everywhere: it was dropped": stored(np.zeros_like),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_was_done_to_a_weight_is_told(words):
    assert wrong_integers(WRONG[words]) == words


def test_bytes_that_are_read_with_another_sign():
    right = stored()
    unsigned = StoredInteger(WEIGHT, right.integers.view(np.uint8), SCALES, np.zeros(1), 0)
    assert wrong_integers(unsigned) == "holds int8 bytes kept as uint8: numbers of one sign are 256 steps off"


@pytest.mark.parametrize(
    "sound",
    [
        stored(),
        stored(zero=3),
        stored(made_of=WEIGHT + 0.01 * np.random.default_rng(6).standard_normal(WEIGHT.shape)),  # another weight
        stored(lambda steps: np.rint(steps + 0.4 * np.sin(np.arange(steps.size)).reshape(steps.shape))),  # adaptive
        stored(scale=SCALES / 2),  # cut off
        stored(scale=SCALES * 16, was=WEIGHT[:, :1, :1]),  # few numbers
    ],
)
def test_nothing_is_told_of_rounding_to_nearest(sound):
    assert wrong_integers(sound) == ""


def test_the_reciprocal_of_a_scale():
    assert wrong_scale(np.array([76.2]), np.array([1 / 76.2])).startswith("is the reciprocal")
    assert wrong_scale(np.array([0.01]), np.array([0.02])) == ""
    assert wrong_scale(np.array([1.0]), np.array([1.0])) == ""


def test_usual_ranges_of_pictures():
    assert prepared(0, 245.2) == "pixels from 0 to 255"
    assert prepared(0, 0.98) == "numbers from 0 to 1"
    assert prepared(-0.97, 1.0) == "numbers from -1 to 1"
    assert prepared(-2.1, 2.6) == ""
    assert prepared(0, 30) == ""
