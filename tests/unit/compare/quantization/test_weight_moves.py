"""Rows of a weight that were exchanged or rescaled before it was quantized; expected values by how they were made."""

import numpy as np
import pytest

from tensortriage.compare.quantization.weight_moves import scattered, weight_moves

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((16, 12))


def rounded(weight, bits=8):
    """Return a weight quantized with one symmetric scale per row, and the steps."""
    step = np.abs(weight).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    return np.rint(weight / step) * step, step


def places(moves):
    assert [move.factor for move in moves] == pytest.approx([1.0] * len(moves), abs=0.05)
    return [(move.row, move.axis, move.other) for move in moves]


@pytest.mark.parametrize("bits", [8, 4])
def test_exchanged_rows(bits):
    now, step = rounded(WEIGHT[[1, 0, *range(2, 16)]], bits)
    assert places(weight_moves(WEIGHT, now, step)) == [(0, 0, 1), (1, 0, 0)]


def test_exchanged_columns():
    now, step = rounded(WEIGHT[:, [1, 0, *range(2, 12)]])
    assert places(weight_moves(WEIGHT, now, step)) == [(0, 1, 1), (1, 1, 0)]


def test_a_rescaled_row():
    factors = np.ones((16, 1))
    factors[3] = 1.05
    (move,) = weight_moves(WEIGHT, *rounded(WEIGHT * factors))
    assert (move.row, move.other) == (3, 3)
    assert move.factor == pytest.approx(1.05, abs=0.005)
    assert move.words == "index 3 of axis 0 is 1.05 times the original's"


def test_rows_exchanged_before_each_was_multiplied_by_its_own_factor():
    """As where a BatchNormalization is folded into what was exchanged."""
    factors = np.linspace(0.5, 1.5, 16)[:, None]
    now, step = rounded(WEIGHT[[1, 0, *range(2, 16)]] * factors)
    first, second = weight_moves(WEIGHT * factors, now, step)
    assert (first.other, second.other) == (1, 0)
    assert first.factor == pytest.approx(float(factors[0, 0] / factors[1, 0]), abs=0.01)


@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("shape", [(16, 12), (1024, 9), (64, 512)])
def test_what_is_only_rounded_has_not_moved(bits, shape):
    weight = RNG.standard_normal(shape)
    assert weight_moves(weight, *rounded(weight, bits)) == ()


@pytest.mark.parametrize("bits", [8, 4])
def test_numbers_that_make_up_for_each_other_have_not_moved(bits):
    """As GPTQ moves them: each by the errors of those before it."""
    weight = RNG.standard_normal((1024, 9))
    _, step = rounded(weight, bits)
    now = np.rint((weight + 4.0 * step * RNG.standard_normal(weight.shape)) / step) * step
    assert (np.median(np.abs(now - weight) / step, axis=1) > 1.0).any()
    assert weight_moves(weight, now, step) == ()


def test_single_numbers_far_away_are_others_unless_they_are_cut_off_or_all_moved():
    was = np.random.default_rng(0).uniform(-1, 1, (16, 16))
    step = np.full((1, 1), 0.01)
    now = np.rint(was / step) * step
    assert not scattered(was, now, step).any()
    now[3, 5] -= 0.3 * np.sign(now[3, 5])
    assert list(zip(*np.nonzero(scattered(was, now, step)), strict=True)) == [(3, 5)]
    assert not scattered(was, np.clip(was, -0.8, 0.8), step).any()
    assert not scattered(was, now + np.random.default_rng(1).normal(0, 0.04, was.shape), step).any()
