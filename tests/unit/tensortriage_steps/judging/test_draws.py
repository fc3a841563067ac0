"""Draws of rounding: each on inputs that the format cannot tell apart, and its own."""

import numpy as np

from models import parse
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision
from tensortriage_steps.judging.draws import Draws

IDS = """
    g (int64[1] ids) => (float[1, 4] y) <float[2, 4] table = {1.1, 2.3, 3.7, 5.9, 7.1, 8.3, 9.7, 1.9}> {
        e = Gather(table, ids) y = Mul(e, e) }"""


def test_a_model_of_token_ids_is_drawn_by_its_tables():
    feed = {"ids": np.array([1])}
    with Lab() as lab, Draws(lab, parse(IDS), Precision.BF16, feed=feed) as draws:
        exact = [draws.exact(draw, feed)["y"] for draw in range(3)]
        rounded = [draws.rounded(draw, feed)["y"] for draw in range(3)]
        assert np.array_equal(draws.exact(0, feed)["y"], exact[0])
    assert not np.array_equal(exact[0], exact[1])
    right = np.float32([7.1, 8.3, 9.7, 1.9]) ** 2
    for one, other in zip(exact, rounded, strict=True):
        np.testing.assert_allclose(one[0], right, rtol=2**-6)  # each moved by half a step, 2^-8, and squared
        assert np.all(other.view(np.uint32) & 0xFFFF == 0)
        assert 0 < np.abs(other / one - 1).max() < 2**-6
    errors = {tuple((other / one - 1).ravel().tolist()) for one, other in zip(exact, rounded, strict=True)}
    assert len(errors) == 3


def test_numbers_are_moved_and_whole_numbers_are_not():
    feed = {"ids": np.array([1]), "past": np.float32([1, 2]), "empty": np.zeros((1, 0), np.float32)}
    with Lab() as lab, Draws(lab, parse(IDS), Precision.FP16, feed={"ids": feed["ids"]}) as draws:
        moved, again, other = draws.moved(0, feed), draws.moved(0, feed), draws.moved(1, feed)
    assert moved["ids"] is feed["ids"]
    assert moved["empty"].shape == (1, 0)
    assert np.array_equal(moved["past"], again["past"])
    assert not np.array_equal(moved["past"], other["past"])
    assert 0 < np.abs(moved["past"] / feed["past"] - 1).max() <= 2**-11 + 1e-7
