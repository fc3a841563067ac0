"""A pair laid out: which elements are wrong at all, and which are only as far off as the noise of their slices."""

import numpy as np
import pytest

from tensortriage.compare.patterns.error_view import MOST_ELEMENTS, lay_out, same_box

RNG = np.random.default_rng(0)
PLAIN = RNG.standard_normal((32, 48)).astype(np.float32)


def test_an_element_far_outside_the_noise_is_wrong_and_no_other():
    target = PLAIN * (1.0 + 1e-6 * RNG.standard_normal(PLAIN.shape).astype(np.float32))
    target[5, 7] += 0.5
    wrong = lay_out(PLAIN, target, floor=0.0).wrong
    assert np.argwhere(wrong).tolist() == [[5, 7]]


def test_the_noise_of_a_loud_channel_is_not_wrong():
    """The error of a product goes with the size of its column, however small its own result: so do outlier channels."""
    loud = PLAIN.copy()
    loud[::2, :8:2], loud[1::2, 1:8:2] = 3000.0, 3000.0
    sizes = np.sqrt(np.mean(np.square(loud.astype(np.float64)), axis=0))
    target = loud + 1e-6 * sizes * RNG.standard_normal(loud.shape)
    assert not lay_out(loud.astype(np.float64), target, floor=0.0).wrong.any()


def test_where_all_are_equally_off_none_is_wrong():
    specimen = lay_out(PLAIN, 1.5 * PLAIN, floor=0.0)
    assert not specimen.wrong.any()
    assert specimen.support(1.5 * PLAIN.astype(np.float64), parameters=1) == pytest.approx(1.0)
    assert specimen.support(PLAIN.astype(np.float64)) == 0.0


def test_a_large_pair_is_a_box_with_the_largest_errors_in_it():
    large = np.zeros((4096, 1024), np.float32)
    target = large.copy()
    target[3333, 5] = 1.0
    specimen = lay_out(large, target, floor=0.0)
    assert specimen.reference.size <= MOST_ELEMENTS
    assert specimen.is_whole(1)
    assert not specimen.is_whole(0)
    assert 3333 in specimen.indices[0]
    assert specimen.error_energy == 1.0
    numbered = np.arange(large.size, dtype=np.float64).reshape(large.shape)
    assert np.array_equal(same_box(specimen, numbered), numbered[specimen.indices[0]])


def test_nan_equals_nan_and_what_is_broken_is_only_the_targets():
    ours, theirs = np.float32([1, np.nan, np.inf, 2]), np.float32([1, np.nan, np.inf, np.nan])
    specimen = lay_out(ours, theirs, floor=0.0)
    assert specimen.unequal.tolist() == [False, False, False, True]
    assert specimen.broken.tolist() == [False, False, False, True]
    assert specimen.finite.tolist() == [True, False, False, False]
    assert specimen.error.tolist() == [0.0] * 4


def test_strings_and_complex_numbers_become_numbers():
    words = lay_out(np.array(["a", "b"], object), np.array(["a", "c"], object), floor=0.0)
    assert (words.text, words.unequal.tolist()) == (True, [False, True])
    parts = lay_out(np.array([1 + 2j]), np.array([1 + 3j]), floor=0.0)
    assert (parts.shape, parts.error.tolist()) == ((1, 2), [[0.0, 1.0]])


def test_integers_that_doubles_cannot_tell_apart_differ():
    specimen = lay_out(np.array([2**60]), np.array([2**60 + 1]), floor=0.0)
    assert (specimen.error.tolist(), specimen.epsilon) == ([1.0], 0.0)
