"""Indices decided by scores: ties, mismatches, and what no engine may return."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.compare.judgement.ranked import ScoredChoice, compare_extremes, compare_top_k

SCORES = np.array([[3.0, 1.0, 2.99, 0.0], [0.0, 5.0, 1.0, 4.0]])


def test_a_tie_and_a_mismatch_are_told_apart() -> None:
    """Row 0: 3.0 against 2.99 is a tie at a radius of 0.01. Row 1: 5.0 against 4.0 is none; 1 / (2 * 0.01) = 50."""
    found = compare_extremes(np.array([0, 1]), np.array([2, 3]), SCORES, ScoredChoice(axis=1, radius=0.01))
    assert (found.count, found.mismatches, found.ties) == (2, 1, 1)
    assert found.worst_margin == pytest.approx(50.0)
    assert found.in_words("noise") == "1 of 2 indices differ by more than noise (1 more are ties)"
    assert found.measure == "share of indices beyond a tie"
    assert found.share == 0.5


@pytest.mark.parametrize(("kept", "axis"), [(True, 0), (False, 0), (True, 1), (False, 1)])
def test_extremes_along_any_axis_kept_or_not(kept: bool, axis: int) -> None:
    right = np.argmax(SCORES, axis=axis, keepdims=kept)
    assert compare_extremes(right, right, SCORES, ScoredChoice(axis=axis)).differing == 0
    wrong = (right + 1) % SCORES.shape[axis]
    assert compare_extremes(right, wrong, SCORES, ScoredChoice(axis=axis)).mismatches == right.size


def test_the_smallest_wins_where_it_should() -> None:
    found = compare_extremes(
        np.array([3, 0]), np.array([1, 0]), SCORES, ScoredChoice(axis=1, radius=0.5, largest=False)
    )
    assert (found.mismatches, found.ties) == (0, 1)


def test_equal_scores_tie_without_any_radius() -> None:
    assert compare_extremes(np.array([0]), np.array([1]), np.ones((1, 3)), ScoredChoice(axis=1)).ties == 1


@pytest.mark.parametrize("wrong", [4, -5])
def test_an_index_out_of_range_is_a_mismatch_at_any_radius(wrong: int) -> None:
    found = compare_extremes(np.array([0, 1]), np.array([0, wrong]), SCORES, ScoredChoice(axis=1, radius=100.0))
    assert (found.mismatches, found.worst_margin) == (1, np.inf)


def test_a_score_that_is_nan_ties_with_nothing() -> None:
    scores = np.array([[1.0, np.nan, 0.5]])
    assert compare_extremes(np.array([0]), np.array([1]), scores, ScoredChoice(axis=1, radius=10.0)).mismatches == 1


def test_masked_scores_have_a_radius_of_their_own() -> None:
    scores = np.array([[-1e9, 1.0, 2.0]])
    radius = np.array([[1e6, 0.1, 0.1]])
    assert compare_extremes(np.array([2]), np.array([1]), scores, ScoredChoice(axis=1, radius=radius)).ties == 0


def test_neighbours_that_swap_are_ties_and_a_newcomer_from_far_below_is_not() -> None:
    scores = np.array([[5.0, 4.99, 3.0, 1.0]])
    swapped = compare_top_k(np.array([[0, 1, 2]]), np.array([[1, 0, 2]]), scores, ScoredChoice(axis=-1, radius=0.01))
    assert (swapped.unit, swapped.count, swapped.mismatches, swapped.ties) == ("ranks", 3, 0, 2)
    assert swapped.in_words("noise") == "2 of 3 ranks differ, all ties within noise"
    newcomer = compare_top_k(np.array([[0, 1, 2]]), np.array([[0, 1, 3]]), scores, ScoredChoice(axis=-1, radius=0.01))
    assert newcomer.mismatches == 1


def test_without_order_only_members_count() -> None:
    scores = np.array([[5.0, 4.0, 3.0, 2.99]])
    same = compare_top_k(np.array([[0, 1, 2]]), np.array([[2, 0, 1]]), scores, ScoredChoice(axis=-1, ordered=False))
    assert same.differing == 0
    other = compare_top_k(
        np.array([[0, 1, 2]]), np.array([[3, 0, 1]]), scores, ScoredChoice(axis=-1, radius=0.01, ordered=False)
    )
    assert (other.mismatches, other.ties) == (0, 1)
    with_order = compare_top_k(np.array([[0, 1, 2]]), np.array([[2, 0, 1]]), scores, ScoredChoice(axis=-1))
    assert with_order.mismatches == 3


def test_an_index_given_twice_is_a_mismatch() -> None:
    scores = np.array([[1.0, 1.0, 1.0]])
    assert (
        compare_top_k(np.array([[0, 1]]), np.array([[0, 0]]), scores, ScoredChoice(axis=-1, radius=1.0)).mismatches == 1
    )


def test_several_decisions_are_counted_as_one() -> None:
    one = compare_extremes(np.array([0, 1]), np.array([2, 3]), SCORES, ScoredChoice(axis=1, radius=0.01))
    both = one + one
    assert (both.count, both.mismatches, both.ties, both.worst_margin) == (4, 2, 2, one.worst_margin)


@given(
    st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=30),
    st.floats(0.0, 5.0),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_whatever_moved_scores_decide_is_within(values: list[float], radius: float, seed: int, ordered: bool) -> None:
    """Any decision made from scores that are off by at most the radius is valid: by the definition of a tie."""
    rng = np.random.default_rng(seed)
    scores = np.array([values])
    moved = scores + radius * rng.uniform(-1, 1, scores.shape)
    k = int(rng.integers(1, len(values) + 1))
    ours, theirs = (np.argsort(-each, axis=1, kind="stable")[:, :k] for each in (scores, moved))
    allowed = radius * (1 + 1e-9) + 1e-9  # the sums above are rounded
    shown = theirs if ordered else rng.permuted(theirs, axis=1)
    found = compare_top_k(ours, shown, scores, ScoredChoice(axis=1, radius=allowed, ordered=ordered))
    assert found.mismatches == 0
    assert compare_extremes(ours[:, :1], theirs[:, :1], scores, ScoredChoice(axis=1, radius=allowed)).mismatches == 0


@given(st.integers(2, 30), st.integers(0, 2**32 - 1), st.floats(0.0, 0.4))
def test_a_choice_farther_than_twice_the_radius_never_is(size: int, seed: int, radius: float) -> None:
    """Scores are whole numbers in any order, one apart: no two tie below a radius of a half."""
    rng = np.random.default_rng(seed)
    scores = rng.permutation(size).astype(np.float64)[None]
    best = np.argmax(scores, axis=1)
    other = (best + rng.integers(1, size)) % size
    assert compare_extremes(best, other, scores, ScoredChoice(axis=1, radius=radius)).mismatches == 1
