"""What is kept of a tensor gives back how far another is from it."""

import math

import ml_dtypes
import numpy as np
import pytest

from tensortriage_fleet.baseline.figures import PROJECTIONS, SMALL, KeptDistance, distance, excess, figures_of

RNG = np.random.default_rng(7)


def apart(reference, target):
    return distance(figures_of(reference), figures_of(target))


@pytest.mark.parametrize("count", [SMALL, SMALL + 1, 40_000])
@pytest.mark.parametrize("spread", ["everywhere", "one element"])
def test_a_distance_is_that_of_the_tensors_wherever_the_difference_lies(count, spread):
    right = RNG.normal(size=count).astype(np.float32)
    for size in (1e-6, 1e-2):
        wrong = right.astype(np.float64)
        wrong[slice(None) if spread == "everywhere" else slice(5, 6)] *= 1 + size
        wrong = wrong.astype(np.float32)
        true = np.linalg.norm(wrong.astype(float) - right) / np.linalg.norm(right.astype(float))
        found = apart(right, wrong)
        # chi-squared of 128 degrees: a standard deviation of 1 / sqrt(256) = 6 %
        assert found.error == pytest.approx(true, rel=1e-5 if count <= SMALL else 0.3)
        assert found.within(true * 1.001)
        assert not found.within(true / 1.8)


def test_one_estimate_of_a_million_exceeds_the_distance_by_the_excess():
    # chi-squared of 2m degrees of freedom is above 2y as often as a Poisson variable of mean y is below m
    mean = PROJECTIONS * excess(PROJECTIONS) ** 2 / 2
    beyond = sum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(PROJECTIONS // 2))
    assert beyond == pytest.approx(1e-6, rel=0.2)


def test_bits_that_are_equal_are_no_distance():
    array = RNG.normal(size=(3, 100)).astype(np.float16)
    assert apart(array, array.copy()) == KeptDistance(0.0)


def test_another_shape_nan_or_type_is_infinitely_far():
    right = np.ones((2, 3), np.float32)
    assert apart(right, right.reshape(3, 2)).error == math.inf
    assert apart(right, right.astype(np.int32)).error == math.inf
    assert apart(right, np.where(right > 0, np.nan, right).astype(np.float32)).error == math.inf
    holes = right.copy()
    holes[0, 0] = np.inf
    assert apart(holes, holes * np.float32(1)).error == 0.0
    assert not apart(holes, -holes).within(1.0)


def test_of_integers_the_share_that_is_unequal_counts():
    right = np.arange(50_000) % 1000
    wrong = right.copy()
    wrong[:5000] = -1
    found = apart(right, wrong)
    assert found.exact
    assert found.error == pytest.approx(0.1, abs=0.05)  # 1,024 samples: a standard deviation of 1 %
    assert found.within(0.1)
    assert not found.within(0.0)
    one = right.copy()
    one[49_999] = -1
    assert not apart(right, one).within(0.0)  # the digest tells what the sample may miss
    assert apart(np.array([True, False]), np.array([True, True])).error == 0.5


def test_types_that_numpy_lacks_and_words():
    narrow = RNG.normal(size=20).astype(ml_dtypes.bfloat16)
    doubled = narrow * ml_dtypes.bfloat16(2)
    assert apart(narrow, doubled).error == pytest.approx(1.0)
    words = np.array(["a", "b"], dtype=object)
    assert apart(words, words.copy()).error == 0.0
    assert not apart(words, words[::-1]).within(0.5)
    empty = np.zeros((0, 3), np.float32)
    assert apart(empty, empty).error == 0.0
