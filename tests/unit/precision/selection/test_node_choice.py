"""Influences and the choice from them, on engines made of numbers, so that the smallest set is known."""

import contextlib
import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precision_numbers import Additive
from tensortriage.precision.selection.influence import influences
from tensortriage.precision.selection.node_choice import (
    answer,
    answered,
    bisected,
    choose,
    galloped,
    linear,
    prune,
    smallest,
)
from tensortriage.search.answers.speculation import Speculation


def quiet(count, **loud):
    """Return ratios of nodes that do next to nothing, and of some that do more."""
    return {**{f"n{index}": 0.001 for index in range(count)}, **loud}


def test_few_runs_find_what_matters():
    engine = Additive(quiet(500, n77=3.0, n300=0.9, n301=math.inf))
    found = influences(engine.items, engine.only)
    assert {name for name in found.alone if found.ratio(name) > 0.5} == {"n77", "n300", "n301"}
    assert found.ratio("n77") == pytest.approx(3.0)
    assert found.runs < 70  # 2 K log2(N / K) is 44 for 3 of 500; the two neighbours share their way down
    assert found.order()[:3] == ["n301", "n77", "n300"]


def test_what_is_left_in_groups_shares_their_power():
    engine = Additive(quiet(64, n9=5.0))
    found = influences(engine.items, engine.only)
    others = [name for name in engine.items if name != "n9"]
    assert found.predicted(others) == pytest.approx(math.sqrt(63) * 0.001, rel=1e-6)


def test_nothing_is_looked_into_when_all_is_well():
    engine = Additive(quiet(100))
    assert influences(engine.items, engine.only).runs == 1


def test_without_a_limit_groups_are_weighed_against_the_largest():
    engine = Additive(quiet(256, n3=40.0, n200=30.0))
    found = influences(engine.items, engine.only, relative=True)
    assert found.order()[:2] == ["n3", "n200"]
    assert found.runs < 60


def test_when_time_is_over_groups_share_what_is_known_of_them():
    engine = Additive({f"n{index}": 1.0 for index in range(64)})
    found = influences(engine.items, engine.only, expired=lambda: len(engine.asked) >= 11)
    assert found.runs <= 12
    assert found.predicted(engine.items) == pytest.approx(8.0)  # sqrt(64), in whatever groups


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 6), st.integers(20, 120))
def test_independent_errors_give_the_smallest_set(seed, sensitive, count):
    """The smallest set drops the largest ratios until the squares of the rest sum to at most 1."""
    rng = random.Random(seed)
    ratios = {f"n{index}": math.exp(rng.gauss(-5.0, 1.0)) for index in range(count)}
    for name in rng.sample(sorted(ratios), sensitive):
        ratios[name] = math.exp(rng.gauss(0.7, 0.7))
    ordered = sorted((ratio**2 for ratio in ratios.values()), reverse=True)
    smallest = next(k for k in range(count + 1) if sum(ordered[k:]) <= 1.0)
    engine = Additive(ratios)
    choice = choose(influences(engine.items, engine.only), engine.read)
    assert choice.reading.within
    assert len(choice.kept) == smallest


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_pairs_that_interact_cost_at_most_two_more(seed):
    """Both of a pair in the format are too much, either alone is nothing: one of each pair has to be kept."""
    rng = random.Random(seed)
    ratios = quiet(100)
    names = rng.sample(sorted(ratios), 7)
    ratios[names[0]] = 2.0
    pairs = [(names[1], names[2], 3.0), (names[3], names[4], 3.0), (names[5], names[6], 3.0)]
    engine = Additive(ratios, pairs=pairs)
    choice = choose(influences(engine.items, engine.only), engine.read)
    assert choice.reading.within
    assert len(choice.kept) <= 1 + 3 + 2
    for name in choice.kept:
        assert not engine.read(frozenset(choice.kept) - {name}).within


def test_a_stricter_choice_keeps_more():
    engine = Additive({f"n{index}": 0.3 for index in range(40)})
    found = influences(engine.items, engine.only)
    lenient, strict = choose(found, engine.read), choose(found, engine.read, strict=2.0)
    assert strict.reading.ratio <= 0.5 < lenient.reading.ratio <= 1.0
    assert len(strict.kept) > len(lenient.kept)


def test_no_choice_is_enough():
    engine = Additive(quiet(10), floor=2.0)
    assert choose(influences(engine.items, engine.only), engine.read) is None


def test_pruning_leaves_a_1_minimal_set():
    needed = {"c", "q"}
    left = answered(prune("abcdefghijklmnopqrstuvwxyz"), lambda rest: needed <= rest)
    assert set(left) == needed


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 26])
def test_galloping_finds_the_shortest_prefix(length):
    assert answered(galloped("abcdefghijklmnopqrstuvwxyz"), lambda prefix: len(prefix) >= length) == length


def test_galloping_may_find_none():
    assert answered(galloped("abc"), lambda prefix: False) is None


@pytest.mark.parametrize("find", [bisected, linear, smallest])
def test_what_is_asked_ahead_is_what_the_search_comes_to(find):
    items, needed, asked = [f"n{number}" for number in range(20)], {"n2", "n11"}, []

    def enough(kept):
        asked.append(kept)
        return needed <= kept

    result = answered(find(items), enough)
    known, history, rounds, search = {}, [], 0, find(items)
    ahead = Speculation(lambda: find(items), known.get)
    ask = next(search)
    for kept in asked:
        assert ask.candidates == (kept,)
        if kept not in known:
            rounds += 1
            for each in [kept, *itertools.islice(ahead.after(history, ask), 8)]:
                known[each] = answer(needed <= each)
        history.append((known[kept],))
        with contextlib.suppress(StopIteration):
            ask = search.send(history[-1])
    assert needed <= set(result)
    assert rounds < len(set(asked))
