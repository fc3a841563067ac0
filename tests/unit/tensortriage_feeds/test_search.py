"""The search among candidates: what is tried first, when it ends, and what an agreement says."""

import math

import numpy as np
import pytest

from tensortriage_feeds import search as module
from tensortriage_feeds.search import Wanted, bits_of, combinations, search
from tensortriage_feeds.transforms import composed

RNG = np.random.default_rng(2)
X = RNG.random((1, 3, 6, 6)).astype(np.float32)
WEIGHTS = RNG.standard_normal((X.size, 9))


def run(tensors):
    return {"y": np.tanh(tensors["x"].reshape(1, -1).astype(np.float64) @ WEIGHTS / 9)}


def wanted(x):
    return Wanted(run({"x": x}), {"y": 1e-6})


def test_two_changes_are_found_together():
    found = search({"x": X}, run, wanted((X * 2 - 1)[:, ::-1]), confirmed=lambda steps: True)
    assert [step.kind for step in found.steps] == ["channels-reversed", "scale"]
    assert found.distance <= 1.0


def test_a_candidate_that_the_judge_rejects_is_not_the_end(monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.1)
    refused = []
    found = search({"x": X}, run, wanted(X[:, ::-1]), confirmed=lambda steps: bool(refused.append(steps)))
    assert refused
    assert found.tried > 5


def test_it_ends_with_its_time_and_says_how_many_it_tried(monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.0)
    assert search({"x": X}, run, wanted(X * 3.3), confirmed=lambda steps: True).tried <= 1


def test_outputs_of_another_shape_are_infinitely_far():
    assert wanted(X).distance({"y": np.zeros((1, 8))}) == math.inf
    assert wanted(X).distance({}) == math.inf


def test_integers_are_equal_or_not():
    exact = Wanted({"label": np.array([3])}, {"label": 0.0})
    assert exact.distance({"label": np.array([3])}) == 0.0
    assert exact.distance({"label": np.array([2])}) == math.inf


@pytest.mark.parametrize(
    ("elements", "bits"), [(1, math.log2(1e5)), (8, 8 * math.log2(1e5)), (1000, 64 * math.log2(1e5))]
)
def test_an_agreement_says_as_much_as_it_is_unlikely(elements, bits):
    """An element within 1e-6 that was off by 0.1 is there by chance once in 1e5; more than 64 count no more."""
    outputs = {"y": np.ones(elements)}
    assert bits_of(outputs, Wanted(outputs, {"y": 1e-6}), {"y": 0.1}) == pytest.approx(bits)


def test_every_candidate_keeps_type_and_shape():
    feed = {"x": X, "ids": np.array([[5, 6, 7, 0], [5, 8, 0, 0]]), "mask": np.array([[1, 1, 1, 0], [1, 1, 0, 0]])}
    for _, steps in zip(range(3000), combinations(feed), strict=False):
        for name, array in composed(steps, feed).items():
            assert (array.dtype, array.shape) == (feed[name].dtype, feed[name].shape), steps


def test_what_comes_clearly_nearer_is_told_apart_from_what_a_weight_makes_as_well():
    rounded = np.rint(X[:, ::-1] * 4096) / 4096  # by the program, on its way
    found = search({"x": X}, run, wanted(rounded.astype(np.float32)), confirmed=lambda steps: False, seconds=2)
    assert [step.kind for step in found.steps] == ["channels-reversed"]
    assert found.left < 1 / 30
    assert found.is_clear
    other = search({"x": X}, run, wanted(X * 1.37 + 1e-4), confirmed=lambda steps: False, seconds=1)
    assert not other.is_clear
