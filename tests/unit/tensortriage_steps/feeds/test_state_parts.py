"""Which rows of a state are new, told by bits."""

import numpy as np
import pytest

from tensortriage_steps.feeds.state_parts import WHOLE, state_parts

RNG = np.random.default_rng(0)
HELD = RNG.normal(size=(2, 3, 5, 4)).astype(np.float32)
FRESH = RNG.normal(size=(2, 3, 2, 4)).astype(np.float32)


def shows(before, after, count):
    """Return the new rows and the old ones, which have to be what was given."""
    new, old = state_parts(before, after, count)
    assert (new.word, old.word, new.source) == ("new rows", "old rows", None)
    np.testing.assert_array_equal(after[old.place], before[old.source])
    return after[new.place], after[old.place]


@pytest.mark.parametrize("count", [2, 0])
def test_a_cache_grows_behind_what_it_held_or_before_it(count):
    for after in (np.concatenate([HELD, FRESH], 2), np.concatenate([FRESH, HELD], 2)):
        new, old = shows(HELD, after, count)
        np.testing.assert_array_equal(new, FRESH)
        np.testing.assert_array_equal(old, HELD)


def test_a_window_and_the_state_of_a_convolution_let_the_first_rows_go():
    new, old = shows(HELD, np.concatenate([HELD[:, :, 2:], FRESH], 2), 2)
    np.testing.assert_array_equal(new, FRESH)
    np.testing.assert_array_equal(old, HELD[:, :, 2:])
    new, old = shows(HELD, np.concatenate([HELD[:, :, 3:], FRESH], 2), 2)  # shorter than before
    assert (new.shape[2], old.shape[2]) == (2, 2)


def test_a_cache_of_a_fixed_size_is_written_in_a_few_rows():
    after = HELD.copy()
    after[:, :, 3] = 7
    new, old = shows(HELD, after, 1)
    assert new.shape == (2, 3, 1, 4)
    assert np.all(new == 7)
    assert old.shape == (2, 3, 4, 4)


def test_a_state_that_is_written_anew_is_a_whole():
    assert state_parts(HELD, HELD + 1, 1) == WHOLE
    assert state_parts(np.zeros((2, 3, 0, 4)), FRESH, 2) == WHOLE  # it begins
    assert state_parts(HELD[0], HELD, 1) == WHOLE
    assert state_parts(HELD, HELD[:, :, :, :2], 1) == WHOLE
    assert state_parts(np.zeros_like(HELD), HELD, 5) == WHOLE


def test_a_state_that_comes_back_as_it_was_is_old():
    (old,) = state_parts(HELD, HELD.copy(), 1)
    assert (old.word, old.place, old.source) == ("old rows", (), ())
