"""Next tokens; the divergence against the formula with probabilities written out, and against a known value."""

import math

import numpy as np
import pytest

from tensortriage.compare.next_token import compare_next, lead


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


def test_another_token_within_the_radius_is_a_tie():
    ours, theirs = np.array([[1.0, 0.9, 0.0]]), np.array([[0.9, 1.0, 0.0]])
    assert compare_next(ours, theirs, np.full((1, 3), 0.06)).tie is True
    firm = compare_next(ours, theirs, np.full((1, 3), 0.01))
    assert (firm.tie, firm.margin) == (False, pytest.approx(5.0))


def test_the_lead_is_that_of_the_closest_row():
    scores = np.array([[3.0, 1.0, 0.0], [1.0, 0.8, 0.0]])
    assert lead(scores, np.full(scores.shape, 0.1)) == pytest.approx(1.0)
    assert lead(scores, np.zeros(scores.shape)) == math.inf
