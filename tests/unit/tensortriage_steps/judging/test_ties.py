"""Tokens that tie within their radii, and by how much one leads."""

import math

import numpy as np
import pytest

from tensortriage_steps.judging.ties import is_tie, lead


def test_another_token_within_the_radius_is_a_tie():
    scores, first, second = np.array([[1.0, 0.9, 0.0]]), np.array([0]), np.array([1])
    assert is_tie(first, second, scores, np.full((1, 3), 0.06))
    assert not is_tie(first, second, scores, np.full((1, 3), 0.01))
    assert lead(scores, np.full((1, 3), 0.01)) == pytest.approx(5.0)


def test_the_lead_is_that_of_the_closest_row():
    scores = np.array([[3.0, 1.0, 0.0], [1.0, 0.8, 0.0]])
    assert lead(scores, np.full(scores.shape, 0.1)) == pytest.approx(1.0)
    assert lead(scores, np.zeros(scores.shape)) == math.inf
