import math

import pytest

from tensortriage.errors import UsageError
from tensortriage.search.statistics.repeats import (
    Confirming,
    Rate,
    Repeats,
    chosen_risk,
    enough_of_both,
    runs_needed,
    unseen_risk,
)


@pytest.mark.parametrize("runs", [1, 3, 16, 60])
@pytest.mark.parametrize("confidence", [0.9, 0.975])
def test_lower_bound_where_it_has_a_closed_form(runs, confidence):
    # All failed: rate**runs = 1 - confidence. One failed: 1 - (1 - rate)**runs = 1 - confidence.
    assert Rate(runs, runs).at_least(confidence) == pytest.approx((1 - confidence) ** (1 / runs))
    assert Rate(1, runs).at_least(confidence) == pytest.approx(1 - confidence ** (1 / runs))


def test_nothing_failed_bounds_nothing():
    assert Rate(0, 5).at_least(0.95) == 0.0


@pytest.mark.parametrize(("rate", "risk", "runs"), [(0.5, 0.05, 5), (0.5, 0.0625, 4), (0.9, 0.05, 2), (0.3, 0.05, 9)])
def test_runs_until_a_false_pass_is_rare_enough(rate, risk, runs):
    assert runs_needed(rate, risk, limit=60) == runs
    assert (1 - rate) ** runs <= risk * (1 + 1e-9) < (1 - rate) ** (runs - 1)


def test_extremes_of_the_rate():
    assert runs_needed(1.0, 0.01, limit=60) == 1
    assert runs_needed(0.0, 0.01, limit=60) == 60
    assert runs_needed(1e-9, 0.01, limit=60) == 60


@pytest.mark.parametrize(
    "how", [{"premise": 0}, {"measure": 0}, {"limit": 0}, {"confidence": 1.0}, {"confidence": math.nan}]
)
def test_bad_repeats_are_refused(how):
    with pytest.raises(UsageError) as error:
        Repeats(**how)
    assert error.value.slug == "search-repeats-invalid"


@pytest.mark.parametrize(
    ("rate", "confidence", "runs"),
    [
        (0.5, 0.95, 5),  # 0.5^5 = 0.031 <= 0.05 < 0.5^4
        (0.2, 0.95, 14),  # 0.8^14 = 0.044 <= 0.05 < 0.8^13 = 0.055
        (0.1, 0.9, 22),  # 0.9^22 = 0.098 <= 0.1 < 0.9^21 = 0.109
        (0.99, 0.5, 1),
    ],
)
def test_runs_of_one_kind_exclude_a_rate_of_the_other(rate, confidence, runs):
    assert runs_needed(rate, 1 - confidence) == runs
    assert (1 - rate) ** runs <= 1 - confidence
    assert runs == 1 or (1 - rate) ** (runs - 1) > 1 - confidence


def test_a_part_of_what_failed_each_time_is_asked_about_once():
    inside = Repeats().inside(Rate(3, 3))
    assert (inside.wholes, inside.passes) == (1, 2)
    # 3 failures in a row and 2 passes are likeliest at a rate of 3/5: (3/5)^3 (2/5)^2 = 3.5 %, one pass 27/256 = 10.5 %
    assert unseen_risk(3, 2) <= 0.05 < unseen_risk(3, 1)
    assert Repeats().inside(Rate(2, 3)) == Repeats()  # it comes and goes: measured again
    assert Repeats(premise=1).inside(Rate(1, 1)) == Repeats(premise=1)  # a person, who is trusted


def test_a_whole_that_never_fails_is_given_up_after_nine_runs():
    assert Repeats().passes == 9  # at 30 % of runs, 0.7^9 = 4 %
    assert Repeats(premise=16).passes == 16
    assert Repeats(premise=1).passes == 1


@pytest.mark.parametrize(
    ("passed", "failures", "more"),
    [
        ((1, 1), 12, (2, 2)),  # the search says little: new runs, as after the whole's three failures alone
        ((5, 1), 12, (0, 2)),  # 500 (12/17)^12 (5/17)^5 = 1.7 %
        ((4,), 12, (0,)),  # 165 of 500 items may have 4 passes in 15 answers, and 335 have 5: 3.5 %; 500 would be 6.2 %
        ((3,), 12, (1,)),
        ((9, 9), 0, (2, 2)),  # passes that a part contradicts say nothing
    ],
)
def test_what_the_search_has_told_is_not_asked_again(passed, failures, more):
    confirming = Confirming.of(passed, failures, 500, Repeats())
    assert confirming.passes == more
    assert 0.0 < confirming.risk <= Repeats().risk


def test_items_differ_in_their_records():
    assert chosen_risk(3, 2, 1, 1) == pytest.approx(unseen_risk(3, 2), rel=1e-3)  # one item: nothing was chosen
    assert unseen_risk(12, 4) < chosen_risk(12, 4, 500, 11) < 500 * unseen_risk(12, 4)
    for rate in (0.3, 0.7, 0.9):  # all that 10 free answers can be, at their chance: the search ends with one of them
        chance = sum(math.comb(10, k - 1) * rate ** (15 - k) * (1 - rate) ** k for k in range(4, 11))
        assert chance <= chosen_risk(11, 4, 1024, 10) * 1.001


@pytest.mark.parametrize(
    ("seen", "enough"),
    [((1, 1), (4, 3)), ((3, 1), (4, 3)), ((8, 1), (8, 2)), ((5, 3), (5, 3))],
)
def test_contradicting_answers_are_asked_for_until_chance_does_not_make_both(seen, enough):
    failures, passes = enough_of_both(*seen, 0.01)
    assert (failures, passes) == enough
    assert unseen_risk(failures, passes) <= 0.01
    assert seen == enough or unseen_risk(failures, passes - 1) > 0.01 or unseen_risk(failures - 1, passes) > 0.01
