"""Top-1, top-5 and tokens, on scores that are written out; what is right is counted by hand."""

import numpy as np
import pytest

from tensortriage_metrics.classes import tokens, top1, top5

SCORES = {"logits": np.float32([[0.1, 0.9, 0.0], [0.8, 0.1, 0.1], [0.2, 0.3, 0.5]])}
"""Whose classes are 1, 0 and 2."""


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([1, 0, 2]), [1, 1, 1]),
        (np.array([1, 2, 2], np.uint8), [1, 0, 1]),
        (np.array([[1], [2], [2]]), [1, 0, 1]),
        (np.float32([1, 2, 2]), [1, 0, 1]),
        (np.eye(3, dtype=np.float32)[[1, 2, 2]], [1, 0, 1]),  # one-hot
        (np.array([1, -100, 0]), [1, 0]),  # -100 is no label
        ({"labels": np.array([0, 0, 0]), "boxes": np.zeros((3, 4))}, [0, 1, 0]),
    ],
)
def test_a_row_is_right_where_its_largest_score_is_the_labels(labels, expected):
    assert top1(SCORES, {}, labels).tolist() == expected


def test_without_labels_it_is_agreement_with_the_reference():
    reference = {"logits": SCORES["logits"][:, [1, 0, 2]]}  # whose classes are 0, 1 and 2
    assert top1(SCORES, {}, None, reference).tolist() == [0, 0, 1]
    assert top1(SCORES, {}, None, SCORES).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="neither labels nor a reference"):
        top1(SCORES, {}, None, {})


def test_five_may_come_first_and_equal_scores_go_to_the_first_class():
    scores = {"y": np.float64([[9, 8, 7, 6, 5, 4], [0, 0, 0, 0, 0, 0]])}
    assert top5(scores, {}, np.array([4, 5])).tolist() == [1, 0]
    assert top5(scores, {}, np.array([5, 4])).tolist() == [0, 1]
    assert top1(scores, {}, np.array([0, 0])).tolist() == [1, 1]


def test_a_score_that_is_no_number_is_never_right():
    scores = {"y": np.float32([[np.nan, 1.0], [np.nan, 1.0], [np.inf, 1.0]])}
    assert top1(scores, {}, np.array([0, 1, 0])).tolist() == [0, 1, 0]


def test_classes_lie_on_the_second_axis_of_pictures():
    """Of four pixels three are right, and one has no class."""
    scores = np.zeros((1, 3, 2, 2), np.float32)
    scores[0, [0, 1, 2, 2], [0, 0, 1, 1], [0, 1, 0, 1]] = 1.0
    labels = np.array([[[0, 1], [2, 0]]], np.uint8)
    assert top1({"mask": scores}, {}, labels).tolist() == [0.75]
    labels[0, 1, 1] = 255
    assert top1({"mask": scores}, {}, labels).tolist() == [1.0]


def test_models_that_return_classes_are_counted_too():
    assert top1({"class": np.array([3, 4])}, {}, np.array([3, 5])).tolist() == [1, 0]


def test_tokens_count_by_place_and_hidden_ones_do_not():
    scores = np.zeros((1, 4, 5), np.float32)
    scores[0, range(4), [1, 2, 3, 4]] = 1.0
    feed = {"attention_mask": np.array([[1, 1, 1, 0]])}
    assert tokens({"logits": scores}, {}, np.array([[1, 2, 0, 0]])).tolist() == [0.5]
    assert tokens({"logits": scores}, feed, np.array([[1, 2, 0, 0]])).tolist() == [pytest.approx(2 / 3)]
    longer, shorter = {"ids": np.array([[1, 2, 3, 4]])}, {"ids": np.array([[1, 2]])}
    assert tokens(shorter, {}, None, longer).tolist() == [0.5]


@pytest.mark.parametrize(
    ("labels", "words"),
    [(np.array([0, 1]), "do not fit scores"), (np.array([0, 1, 3]), "label 3 is none of 3 classes"),
     (np.array([-1, -1, -1]), "every label is negative")],
)  # fmt: skip
def test_labels_that_do_not_fit_are_refused(labels, words):
    with pytest.raises(ValueError, match=words):
        top1(SCORES, {}, labels)
