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
    ],
)
def test_a_change_is_told(made, words):
    assert told(made) == f"'y' is {words}"


@pytest.mark.parametrize(
    "made",
    [
        RIGHT * np.float32(1.3),
        RIGHT[::-1],
        RIGHT + np.float32(1e-3),
        (RIGHT * np.float32(1.001)).astype(np.float16),
        np.zeros_like(RIGHT),
        np.full_like(RIGHT, np.nan),
        RIGHT.T,
    ],
    ids=["factor", "order", "offset", "off before float16", "zeros", "nan", "shape"],
)
def test_other_errors_are_no_change(made):
    assert told(made) == ""


def test_one_output_that_is_not_explained_leaves_all_untold():
    right = {"y": RIGHT, "z": RIGHT}
    assert changes(right, {"y": RIGHT * np.float32(100), "z": RIGHT * np.float32(1.3)}, ["y", "z"]) == {}
