"""Next tokens; the divergence against the formula with probabilities written out, and against a known value."""

import math

import numpy as np
import pytest

from tensortriage.compare.next_token import compare_next


def test_equal_scores_say_the_same():
    scores = np.array([[1.0, 2.0, 4.0], [3.0, 0.0, -1.0]])
    same = compare_next(scores, scores + 5.0)
    assert same.divergence == pytest.approx(0.0, abs=1e-15)
    assert (same.top_agreement, same.same, same.reference) == (1.0, True, (2, 0))


def test_the_divergence_is_that_of_the_probabilities():
    p, q = np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]])
    expected = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)
    assert compare_next(np.log(p), np.log(q)).divergence == pytest.approx(expected)


def test_a_score_that_is_nan_diverges_without_bound():
    assert compare_next(np.array([[1.0, 2.0]]), np.array([[np.nan, 2.0]])).divergence == math.inf


def test_hidden_scores_add_nothing():
    ours, theirs = np.array([[1.0, 2.0, -np.inf]]), np.array([[1.0, 2.5, -np.inf]])
    assert math.isfinite(compare_next(ours, theirs).divergence)
