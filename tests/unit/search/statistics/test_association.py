"""Ranking of properties: expected factors are worked out by hand from the formula of Gunel and Dickey."""

import math

import pytest

from tensortriage.search.statistics.association import Trial, rank


def trials(*rows):
    return [Trial(frozenset(properties), failed) for properties, failed in rows]


def test_factor_of_a_perfect_table():
    """3 failures with, 7 passes without: B(4,1) B(1,8) / B(4,8) = (1/4 * 1/8) / (3! 7! / 11!)."""
    rows = [("a", True)] * 3 + [("b", False)] * 7
    (suspect,) = rank(trials(*rows))
    assert suspect.item == "a"
    assert (suspect.bad_with, suspect.good_with, suspect.bad_without, suspect.good_without) == (3, 0, 0, 7)
    expected = (1 / 4) * (1 / 8) * math.factorial(11) / (math.factorial(3) * math.factorial(7))
    assert suspect.factor == pytest.approx(expected)
    assert suspect.probability == pytest.approx(0.5 * expected / (0.5 + 0.5 * expected))


def test_what_all_share_and_what_failures_avoid_is_not_accused():
    ranked = rank(trials(("ax", True), ("ax", True), ("ay", False), ("ay", False)))
    assert [suspect.item for suspect in ranked] == ["x"]


def test_properties_that_cannot_be_told_apart_share_the_blame():
    ranked = rank(trials(("xy", True), ("xy", True), ("", False), ("", False)))
    assert {suspect.item for suspect in ranked} == {"x", "y"}
    assert ranked[0].probability == ranked[1].probability < 0.5


def test_the_telling_one_comes_first_among_chance_companions():
    rows = [("gx", True), ("g", True), ("gx", True), ("x", False), ("", False), ("x", False), ("", False)]
    ranked = rank(trials(*rows))
    assert ranked[0].item == "g"
    assert ranked[0].factor > 3 * max([suspect.factor for suspect in ranked[1:]], default=0.0)


def test_nothing_is_ranked_without_both_kinds():
    assert rank([]) == ()
    assert rank(trials(("a", True), ("b", True))) == ()
    assert rank(trials(("a", False))) == ()
