"""Other orders and rules of outputs; expected values are numpy's."""

import numpy as np
import pytest

from tensortriage_feeds.returned import changes, in_words

VALUES = np.random.default_rng(8).standard_normal((6, 5)).astype(np.float32)
ONE = 1 / (1 + np.exp(-VALUES.astype(np.float64)))
TWO = np.stack([1 - ONE[:, 0], ONE[:, 0]], 1)


def softmax(scores):
    powers = np.exp(scores)
    return powers / powers.sum(-1, keepdims=True)


def told(right, made, **others):
    return in_words(changes({"y": right, **others}, {"y": np.asarray(made, right.dtype)}, ["y"]))


@pytest.mark.parametrize(
    ("right", "made", "words"),
    [
        (VALUES, VALUES[::-1], "the model's in other places (axis 0 is in reverse order)"),
        (VALUES, VALUES[:, ::-1], "the model's in other places (axis 1 is in reverse order)"),
        (
            VALUES,
            np.random.default_rng(1).permuted(VALUES, axis=1),
            "the model's in other places (axis 1 is in another order, each of its numbers there once)",
        ),
        (
            VALUES,
            np.repeat(VALUES[:1], 6, 0),
            "the model's in other places (the first index of axis 0 is everywhere along it)",
        ),
        (
            ONE.astype(np.float32),
            1 / (1 + np.exp(-2 * VALUES)),
            "the Sigmoid of 2 times the model's logits (of two classes: its Softmax)",
        ),
        (
            ONE.astype(np.float32),
            softmax(VALUES),
            "the Softmax, over axis 1, of the scores whose Sigmoid is the model's",
        ),
        (
            softmax(VALUES),
            softmax(VALUES / 4),
            "the Softmax, over axis 1, of 0.25 times the model's scores (a temperature)",
        ),
    ],
)
def test_an_order_or_a_link_is_told(right, made, words):
    assert told(right, made) == f"'y' is {words}"


def test_indices_by_another_rule_are_told_by_the_values_that_they_choose():
    right = VALUES.argmax(1)
    assert told(right, VALUES.argmin(1), p=VALUES) == "'y' is the index of the smallest of 'p' along axis 1"
    ties = np.round(np.abs(VALUES) / 2).astype(np.float32)
    last = 4 - ties[:, ::-1].argmax(1)
    assert told(ties.argmax(1), last, p=ties) == "'y' is the index of the last of the largest of 'p' along axis 1"


@pytest.mark.parametrize("made", [TWO**3, np.cbrt(TWO) / 2, TWO * np.linspace(0.5, 0.6, 6)[:, None]])
def test_other_scores_have_no_link(made):
    assert told(TWO, made) == ""


def test_other_indices_follow_no_rule():
    assert told(VALUES.argmax(1), np.array([0, 1, 2, 3, 4, 0]), p=VALUES) == ""
