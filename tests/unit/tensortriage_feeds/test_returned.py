"""What is read off outputs that a program changed; expected values are numpy's."""

import numpy as np
import pytest

from tensortriage_feeds.returned import changes, in_words

RIGHT = np.random.default_rng(6).standard_normal((3, 7)).astype(np.float32)
EXP = np.exp(RIGHT.astype(np.float64))


def told(made, right=RIGHT):
    return in_words(changes({"y": right}, {"y": np.asarray(made)}, ["y"]))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ((EXP / EXP.sum(-1, keepdims=True)).astype(np.float32), "the Softmax of the model's over the last axis"),
        ((1 / (1 + np.exp(-RIGHT))).astype(np.float32), "the Sigmoid of the model's"),
        (RIGHT * np.float32(100), "the model's multiplied by 100"),
        (np.maximum(RIGHT, 0), "the model's cut off at 0"),
        (RIGHT.astype(np.float16), "the model's rounded to float16"),
        (np.round(RIGHT.astype(np.float64), 4).astype(np.float32), "the model's rounded to 4 decimals"),
        (np.round(RIGHT), "the model's rounded to whole numbers"),
        (RIGHT * np.float32(1.3), "the model's multiplied by 1.3"),
        (RIGHT + np.float32(1e-3), "the model's moved by 0.001"),
        (RIGHT * np.float32(640) - 3, "the model's multiplied by 640 and moved by -3"),
        (
            np.concatenate([RIGHT[:, :4] * 640, RIGHT[:, 4:]], 1),
            "the model's multiplied by 640 in indices 0..3 of axis 1, elsewhere as it is",
        ),
        (
            np.where(np.isin(np.arange(7), [2, 5]), 1 / (1 + np.exp(-RIGHT)), RIGHT),
            "the Sigmoid of the model's in indices 2, 5 of axis 1, elsewhere as it is",
        ),
        (
            np.where(np.arange(3)[:, None] == 0, RIGHT, 0),
            "left at 0 (memory that is never filled) in indices 1..2 of axis 0, elsewhere as it is",
        ),
        (
            np.resize(RIGHT.astype(np.float16), 42).view(np.float32).reshape(3, 7),
            "the bytes of the model's in float16, read as float32",
        ),
        (
            np.clip(np.rint(RIGHT / 0.02) + 12, -128, 127).astype(np.int8),
            "the model's, left as quantized integers (scale about 0.02, zero point 12)",
        ),
    ],
)
def test_a_change_is_told(made, words):
    assert told(made) == f"'y' is {words}"


@pytest.mark.parametrize(
    "made",
    [
        RIGHT * np.linspace(1, 1.3, 7, dtype=np.float32),
        np.roll(RIGHT, 3),
        RIGHT + np.float32(1e-3) * RIGHT[::-1],
        (RIGHT * np.float32(1.001)).astype(np.float16),
        np.zeros_like(RIGHT),
        np.full_like(RIGHT, np.nan),
        RIGHT.T,
    ],
    ids=["factors", "order", "noise", "off before float16", "zeros", "nan", "shape"],
)
def test_other_errors_are_no_change(made):
    assert told(made) == ""


def test_doubles_read_as_floats_are_told_by_the_half_that_fits():
    right = RIGHT[:, :6]
    made = right.astype(np.float64).view(np.float32).ravel()[:18].reshape(3, 6)
    assert told(made, right) == "'y' is the bytes of the model's in float64, read as float32"


def test_few_numbers_are_near_any_line():
    right = np.array([0.1, 0.25, 0.3, 0.65], np.float32)  # two of the four whole numbers are free: 2 x log2(3) bits
    assert told(np.array([1, 2, 3, 4], np.int8), right) == ""


def test_one_output_that_is_not_explained_leaves_all_untold():
    right = {"y": RIGHT, "z": RIGHT}
    assert changes(right, {"y": RIGHT * np.float32(100), "z": np.abs(RIGHT) ** 0.3}, ["y", "z"]) == {}


WIDE = np.random.default_rng(8).random((1, 9, 40)).astype(np.float32) * np.float32(3) + np.float32(0.1)
BOXES = WIDE[:, :4]
CORNERS = np.concatenate([BOXES[:, :2] - BOXES[:, 2:] / 2, BOXES[:, :2] + BOXES[:, 2:] / 2, WIDE[:, 4:]], 1)
ROWS = np.zeros((9, 48), np.float32)
ROWS[:, :40] = WIDE[0]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (
            CORNERS,
            "boxes in indices 0..3 of axis 1 as corners (x1, y1, x2, y2) made of centre and size (x, y, w, h)",
        ),
        (
            np.concatenate([CORNERS[:, :4] * np.reshape([2, 1, 2, 1], (4, 1)), WIDE[:, 4:]], 1).astype(np.float32),
            "boxes in indices 0..3 of axis 1 as corners (x1, y1, x2, y2) made of centre and size (x, y, w, h), "
            "multiplied by [2.0, 1.0, 2.0, 1.0]",
        ),
        (
            np.where(np.arange(9)[:, None] == 1, WIDE - np.float32(0.75), WIDE),
            "the model's moved by -0.75 in index 1 of axis 1, elsewhere as it is",
        ),
        (
            np.where(np.arange(9)[:, None] > 4, WIDE * WIDE[:, 4:5], WIDE),
            "the model's in indices 5..8 of axis 1 multiplied by index 4, elsewhere as it is",
        ),
        (ROWS.ravel()[:360].reshape(1, 9, 40), "the memory of the model's with rows of 48 numbers, 40 and padding, "
         "read as if it had none"),
        (np.where(np.arange(360).reshape(1, 9, 40) < 90, WIDE, 0), "the model's in the first 90 of 360 numbers, 1/4, "
         "behind them left at 0"),
        (np.where(np.arange(360).reshape(1, 9, 40) < 90, WIDE, -7 * WIDE[:, ::-1]), "the model's in the first 90 of "
         "360 numbers, 1/4, behind them memory that is never filled"),
        (np.roll(WIDE, 1, 1), "the model's in other places (slices of axis 1 are rotated by 1)"),
        (WIDE[:, [1, 0, 2, 3, 4, 5, 6, 7, 8]], "the model's in other places (slices of axis 1 are in another order: "
         "0 holds 1, 1 holds 0)"),
        (np.minimum(WIDE, 2), "the model's cut off at 2"),
        (-np.sort(-WIDE, -1), "the model's sorted along axis 2, descending"),
        ((np.arange(9)[:, None] == WIDE.argmax(1)[:, None]).astype(np.float32),
         "1 at the largest of the model's along axis 1, 0 elsewhere"),
    ],
)  # fmt: skip
def test_what_is_made_of_several_numbers_is_told(made, words):
    assert told(np.ascontiguousarray(made, np.float32), WIDE) == f"'y' is {words}"


def test_a_threshold_is_told_by_the_numbers_around_it():
    words = told(np.where(WIDE < 1, 0, WIDE), WIDE)
    below, above = WIDE[WIDE < 1].max(), WIDE[WIDE >= 1].min()
    assert words == f"'y' is the model's with 0 in place of all below a threshold between {below:.4g} and {above:.4g}"


def test_labels_from_one_on():
    labels = np.random.default_rng(0).integers(0, 9, 12)
    assert told(labels + 1, labels) == "'y' is the model's plus 1 everywhere"
    assert told(labels[:3] + 1, labels[:3]) == ""  # of three numbers, by chance
    assert told(labels + np.arange(12), labels) == ""


def test_a_part_that_ends_with_a_slice_is_no_memory():
    """Ops end there: scores of another branch, behind boxes that are right."""
    assert told(np.where(np.arange(9)[:, None] < 4, WIDE, WIDE[:, ::-1] ** 2), WIDE) == ""


def test_numbers_dequantized_by_another_zero_point_are_told_by_what_they_are_off_by():
    right = np.random.default_rng(6).normal(0, 1, (40, 30)).astype(np.float32)
    step = np.float32(0.05)
    found = changes({"y": right}, {"y": (np.rint(right / step) + 32) * step}, ["y"])
    assert "moved by 1.6, in steps of 0.05" in found["y"].words
    assert not changes({"y": right}, {"y": np.rint(right / step) * step}, ["y"])


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda right: right.astype(np.int32).astype(np.int64), "as int32 holds it, which wraps at 2^31"),
        (lambda right: right.astype(np.uint16).astype(np.int64), "as uint16 holds it, which wraps at 2^16"),
        (lambda right: np.clip(right, -(2**31), 2**31 - 1), "cut off at the ends of int32"),
    ],
)
def test_whole_numbers_that_went_through_fewer_bits_are_told_to_the_last_one(made, words):
    right = np.random.default_rng(3).integers(-900_000_000, 900_000_000, 40).cumsum() + 4_000_000_000
    found = changes({"at": right}, {"at": made(right)}, ["at"])
    assert words in found["at"].words
    other = made(right)
    other[5] += 1
    assert changes({"at": right}, {"at": other}, ["at"]) == {}
