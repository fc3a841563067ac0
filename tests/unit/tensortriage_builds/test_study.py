"""Studies of simulated builds: the truth is known, so what a study says can be checked."""

import random

import pytest

from tensortriage.engines.base import Choice
from tensortriage.search.statistics.repeats import Until
from tensortriage_builds.goal import BuildGoal
from tensortriage_builds.guilty_choice import blame
from tensortriage_builds.study import Studying, suspects
from tensortriage_builds.trial import BuildJudgement, BuildTrial, Difference


class Simulated:
    """Builds whose layers pick tactics at random, and are bad when all of some layers picked tactic 0."""

    identity = "x"

    def __init__(self, *, layers=20, tactics=3, bad=("layer7",), pins=True, seed=0, told=True, flaky=0.0, plain=False):
        self.names = [f"layer{n}" for n in range(layers)]
        self.tactics, self.bad, self.pins, self.told, self.flaky = tactics, set(bad), pins, told, flaky
        self.plain = plain
        self.rng = random.Random(seed)
        self.made = []

    def build(self, name, choices=()):
        given = {choice.layer: int(choice.tactic, 16) for choice in choices}
        drawn = {layer: self.rng.randrange(self.tactics) for layer in self.names} | given
        failed = bool(self.bad) and all(drawn[layer] == 0 for layer in self.bad)
        failed = failed or self.rng.random() < self.flaky
        told = tuple(Choice(layer, hex(drawn[layer])) for layer in self.names) if self.told else ()
        self.made.append(name)
        return BuildTrial(
            name=name,
            judgement=BuildJudgement.BAD if failed else BuildJudgement.GOOD,
            outputs="wrong" if failed else "right",
            choices=told,
            features=tuple((choice.layer, choice.label) for choice in told),
        )

    def deployed(self):
        return self.build("deployed") if self.plain else None

    def difference(self, one, other):
        return Difference("y", "feed", float(one.outputs != other.outputs), 0.0, (one.name, other.name))


def study(bench, **goal):
    return Studying(bench=bench, goal=BuildGoal(**goal), engine="simulated").study()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bad", [("layer7",), ("layer3", "layer16")])
def test_guilty_choices_are_exactly_those_of_the_truth(seed, bad):
    bench = Simulated(bad=bad, seed=seed, tactics=2)
    found = study(bench)
    assert found.stop == "reached"
    assert found.exit_code == 0
    assert {guilty.layer for guilty in found.blame.guilty} <= set(bad)
    assert all(guilty.bad.tactic == "0x0" != guilty.good.tactic for guilty in found.blame.guilty)
    assert found.blame.cured
    assert found.pinned.same_outputs
    assert found.pinned.again_same
    # 20 layers of which about half differ: bisection, its repeats, and single removals
    assert found.blame.builds <= 26


def test_a_choice_that_both_builds_share_is_not_needed_to_tell_them_apart():
    """Of two layers that must both be 0 the good build may have one: then the other alone is guilty."""
    bench = Simulated(bad=("layer0", "layer1"), tactics=2, layers=2)
    good = BuildTrial(
        name="0", judgement=BuildJudgement.GOOD, choices=(Choice("layer0", "0x0"), Choice("layer1", "0x1"))
    )
    bad = BuildTrial(name="1", judgement=BuildJudgement.BAD, choices=(Choice("layer0", "0x0"), Choice("layer1", "0x0")))
    found = blame(bench, [good, bad], {})
    assert [guilty.layer for guilty in found.guilty] == ["layer1"]
    assert found.differing == 1


def test_all_alike_ends_when_the_other_kind_is_excluded():
    """0.8^14 = 0.044 <= 0.05 < 0.8^13: 14 builds exclude a rate of 20 % with 95 % confidence."""
    found = study(Simulated(bad=()))
    assert (found.good, found.bad, len(found.trials)) == (14, 0, 14)
    assert found.suspects == ()
    assert found.distinct_outputs == 1
    fewer = study(Simulated(bad=()), rate=0.5)
    assert len(fewer.trials) == 5  # 0.5^5 = 0.031 <= 0.05 < 0.5^4


def test_without_pinning_the_ranking_names_it_with_confidence():
    found = study(Simulated(pins=False, layers=10, seed=3), width=0.01)
    assert found.blame is None
    assert found.pinned is None
    assert (found.suspects[0].layer, found.suspects[0].choice) == ("layer7", "0x0")
    assert found.suspects[0].probability >= 0.95
    assert found.suspects[0].good_with == found.suspects[0].bad_without == 0


def test_a_cause_outside_the_tactics_is_not_blamed_on_one():
    bench = Simulated(bad=(), flaky=0.5, seed=1)
    found = study(bench, until=8)
    assert found.good
    assert found.bad
    assert not found.blame.guilty
    assert "not among the reported tactics" in found.blame.reason


def test_equal_choices_in_good_and_bad_builds_are_said():
    same = (Choice("a", "0x1"),)
    trials = [
        BuildTrial(name=str(n), judgement=j, choices=same)
        for n, j in enumerate((BuildJudgement.GOOD, BuildJudgement.BAD))
    ]
    assert "same choices" in blame(Simulated(), trials, {}).reason


@pytest.mark.parametrize(("until", "last"), [(Until.GOOD, BuildJudgement.GOOD), (Until.BAD, BuildJudgement.BAD)])
def test_until_good_or_bad_ends_with_one(until, last):
    found = study(Simulated(tactics=2, seed=5), until=until, pin=False)
    assert found.trials[-1].judgement is last
    assert all(trial.judgement is not last for trial in found.trials[:-1])


def test_a_goal_that_is_not_reached_is_no_success():
    found = study(Simulated(bad=()), until=Until.BAD, most=3)
    assert (found.stop, found.exit_code, len(found.trials)) == ("most-runs", 4, 3)


def test_ctrl_c_keeps_what_there_is():
    bench = Simulated(bad=())
    build = bench.build

    def interrupted(name, choices=()):
        if name == "2":
            raise KeyboardInterrupt
        return build(name, choices)

    bench.build = interrupted
    found = study(bench)
    assert (found.stop, found.exit_code, len(found.trials)) == ("interrupted", 130, 2)


def test_suspects_know_the_nodes_of_their_layer():
    good, bad = Choice("conv", "0x1", nodes=("/Conv",)), Choice("conv", "0x0", nodes=("/Conv",))
    trials = [
        BuildTrial(name="0", judgement=BuildJudgement.GOOD, choices=(good,), features=(("conv", good.label),)),
        BuildTrial(name="1", judgement=BuildJudgement.BAD, choices=(bad,), features=(("conv", bad.label),)),
    ]
    assert [(one.layer, one.nodes) for one in suspects(trials)] == [("conv", ("/Conv",))]


def test_a_build_without_recording_is_set_beside_the_others():
    found = study(Simulated(bad=(), plain=True), until=2, pin=False)
    assert (found.deployed.trial.name, found.deployed.seen, found.deployed.moved.max_abs) == ("deployed", True, 0.0)
    assert study(Simulated(bad=()), until=2, pin=False).deployed is None
