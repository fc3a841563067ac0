"""Functions that programs apply to outputs; each is computed here by numpy."""

import numpy as np
import pytest

from tensortriage_feeds.returned import changes, in_words

RIGHT = np.random.default_rng(8).uniform(0.1, 3.0, (4, 6, 5)).astype(np.float32)
EXP = np.exp(RIGHT.astype(np.float64))


def told(made, right=RIGHT, **others):
    found = changes({"y": right, **others}, {"y": made.astype(right.dtype)}, ["y"])
    return in_words(found) if found else ""


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (EXP / EXP.sum(0), "the Softmax of the model's over axis 0"),
        (RIGHT / np.linalg.norm(RIGHT, axis=1, keepdims=True), "the model's divided by its length (L2) along axis 1"),
        (RIGHT / RIGHT.sum(-1, keepdims=True), "the model's divided by its sum along the last axis"),
        (RIGHT - RIGHT.mean(1, keepdims=True), "the model's less its mean along axis 1"),
        (np.cumsum(RIGHT, 1), "the model's summed up along axis 1"),
        (1 / RIGHT, "1 over the model's (its inverse)"),
        (RIGHT**2, "the square of the model's"),
        (np.floor(10 * RIGHT) / 10 * 0 + np.floor(RIGHT), "the model's rounded to whole numbers, down"),
        (np.sqrt(RIGHT) / 2 + 1, "the square root of the model's, multiplied by 0.5 and moved by 1"),
        (RIGHT.swapaxes(1, 2).reshape(RIGHT.shape),
         "the model's in other places (axes transposed to [0, 2, 1], read as if they were not)"),
    ],
)  # fmt: skip
def test_what_a_program_does_is_told(made, words):
    assert told(made) == f"'y' is {words}"


def test_a_logarithm_to_another_base():
    assert told(np.log10(RIGHT)).startswith("'y' is the logarithm of the model's, multiplied by 0.43429")


def test_an_output_that_is_multiplied_by_another():
    other = np.random.default_rng(9).uniform(0.2, 0.9, (4, 6, 1)).astype(np.float32)
    assert told(RIGHT * other, objects=other) == "'y' is the model's multiplied by its 'objects'"


@pytest.mark.parametrize(
    "made",
    [
        RIGHT + 0.01 * np.sin(9 * RIGHT),
        np.arctan(RIGHT),
        RIGHT * np.linspace(1, 2, 5),
        EXP / EXP.sum((1, 2), keepdims=True),
    ],
)
def test_other_numbers_are_no_function(made):
    assert "of the model's" not in told(made)


def test_a_function_that_is_a_line_over_these_numbers_is_not_told():
    near = (1 + 1e-4 * RIGHT).astype(np.float32)
    assert told(np.exp(near.astype(np.float64)) * 2, near).startswith(("", "'y' is the model's multiplied"))
