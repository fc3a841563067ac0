"""Paired metrics: intervals against their formulas and against repeated draws, samples against what was put in."""

import math
import statistics

import numpy as np
import pytest

from tensortriage.compare.task_metric import SampleScore, compare_scores, expanded_tail, interval


def sample(number, reference=1.0, target=1.0, **more):
    return SampleScore(f"data[{number}]", reference, target, **more)


def test_the_interval_of_many_differences_is_that_of_the_normal_distribution():
    differences = np.random.default_rng(0).normal(0.3, 1.0, 2000)
    low, high = interval(differences)
    error = 1.96 * differences.std() / math.sqrt(2000)
    assert (low, high) == pytest.approx((differences.mean() - error, differences.mean() + error), abs=0.1 * error)


def test_intervals_hold_the_mean_about_as_often_as_they_say():
    rng = np.random.default_rng(1)
    held = 0
    for seed in range(60):
        low, high = interval(rng.normal(0.0, 1.0, 50), seed=seed)
        held += low <= 0.0 <= high
    assert held >= 51  # 57 are expected of 95 %; fewer than 51 has a chance of 1 in 100


@pytest.mark.parametrize(("count", "student"), [(5, 2.776), (10, 2.262), (30, 2.045), (1000, 1.962)])
def test_few_samples_have_wider_tails(count, student):
    """Student's quantiles as any table has them."""
    expected = statistics.NormalDist().cdf(-student * math.sqrt(count / (count - 1)))
    assert expanded_tail(count) == pytest.approx(expected, rel=0.04)


def test_intervals_of_few_samples_hold_the_mean_as_often_as_they_say():
    rng = np.random.default_rng(1)
    draws = (interval(rng.normal(0.0, 1.0, 6), seed=seed) for seed in range(400))
    assert sum(low <= 0.0 <= high for low, high in draws) >= 366  # 380 are expected; without expansion it is 351


def test_where_nothing_differs_a_share_may_still():
    found = compare_scores("t", [sample(number) for number in range(100)])
    assert (found.difference, found.low, found.high) == (0.0, None, None)
    assert found.differing_at_most == pytest.approx(0.0370, abs=1e-4)  # Wilson, 0 of 100


def test_losses_and_flips_are_counted_and_listed_worst_first():
    given = [sample(n, label=(3,), other=(3,), margin=2.0) for n in range(20)]
    given[4] = sample(4, target=0.0, label=(3,), other=(5,), margin=0.1)
    given[7] = sample(7, target=0.5, label=(3,), other=(3,), margin=0.3)
    given[9] = sample(9, reference=0.0, label=(1,), other=(3,), margin=0.2)
    found = compare_scores("t", given)
    assert (found.worse, found.better, found.flips) == (2, 1, 2)
    assert [each.feed for each in found.worst] == ["data[4]", "data[7]", "data[9]"]
    assert found.low is not None
    assert found.low < found.difference < found.high
    assert any("margin" in words for words in found.common)


def test_what_bad_samples_share_is_told_only_where_others_lack_it():
    bad = [sample(n, target=0.0, label=(7,), other=(1,), largest_input=50.0) for n in range(5)]
    good = [sample(n, label=(n % 10,), other=(n % 10,), largest_input=1.0) for n in range(20)]
    (inputs, label) = compare_scores("t", [*bad, *good]).common
    assert inputs.startswith("median largest input 50")
    assert label.startswith("label [7] in 100 %")
    same = [sample(n, target=float(n % 2), label=(1,), other=(1,)) for n in range(10)]
    assert compare_scores("t", same).common == ()
