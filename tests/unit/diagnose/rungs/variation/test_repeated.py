"""Runs of one session: equal, below the floor, or different, also from the first run that was deployed."""

import types

import numpy as np
import pytest

from diagnosing import CHAIN_FEED, softmax_chain
from tensortriage.compare.judgement.thresholds import LEAST_EQUAL_RUNS
from tensortriage.diagnose.rungs.variation import repeated as module
from tensortriage.diagnose.rungs.variation.repeated import from_first, repeated, run_to_run, since_deployed, unstable
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.runs.observation.experiment import Measurement
from tensortriage.search.statistics.repeats import Rate
from tensortriage.values.store import MemoryStore

RACE = "faulty:kind=nondeterministic,node=softmax"


@pytest.fixture
def asked(investigate, compared):
    def ask(target, *more):
        inv = investigate(softmax_chain(), CHAIN_FEED, *more, target=target)
        return inv, compared(inv)

    return ask


def test_equal_runs_are_counted_and_remembered(asked, last_step):
    inv, evidence = asked("onnxruntime:optimization=none")
    assert run_to_run(inv, evidence).verdict is None
    step = last_step(inv)
    assert step.answer == f"yes: {step.evidence['runs']} runs are bit-equal"
    assert step.evidence["runs"] >= LEAST_EQUAL_RUNS
    assert 0 < step.evidence["differing_at_most"] < 1
    before = inv.lab.tally.checks
    run_to_run(inv, evidence)
    assert inv.lab.tally.checks == before


def test_an_engine_that_computes_by_rule_is_repeated_as_often_as_tells_whether_it_does(asked, last_step):
    inv, evidence = asked("emulate:precision=bf16")
    assert run_to_run(inv, evidence).verdict is None
    assert last_step(inv).answer == f"yes: {LEAST_EQUAL_RUNS} runs are bit-equal, as it computes by rule"
    assert last_step(inv).evidence["differing_at_most"] == 0.0


def test_runs_that_differ_are_the_verdict_with_the_op_where_it_begins(asked, last_step):
    inv, evidence = asked(RACE)
    verdict = run_to_run(inv, evidence).verdict
    assert (verdict.kind, verdict.confidence_on("real")) == (VerdictKind.NONDETERMINISTIC_RUN, 1.0)
    assert [culprit.node for culprit in verdict.culprits] == ["softmax"]
    seen = repeated(inv, evidence.worst_feed)
    assert seen.differing == seen.runs - 1
    assert 0.01 < seen.moved["y"] < 0.5  # noise of 5 % in each of two runs
    assert " runs" not in verdict.summary  # it is not rare


def test_what_a_model_draws_is_named_though_nothing_is_beyond_a_floor_of_noise(investigate, compared):
    """A normal number is added to numbers of size 1: healthy runs differ by as much as any."""
    text = "g (float[4, 6] x) => (float[4, 6] y) { [draw] n = RandomNormalLike(x)\n [end] y = Add(x, n) }"
    inv = investigate(text, {"x": np.ones((4, 6), np.float32)})
    verdict = run_to_run(inv, compared(inv)).verdict
    assert verdict.kind is VerdictKind.NONDETERMINISTIC_RUN
    assert [culprit.node for culprit in verdict.culprits] == ["draw"]
    assert "draws random numbers on any engine: to compare, make them an input of the model" in verdict.summary


def test_runs_that_differ_by_less_than_rounding_are_no_verdict(asked, last_step):
    inv, evidence = asked(f"{RACE},amount=1e-7")
    assert run_to_run(inv, evidence).verdict is None
    assert last_step(inv).answer.startswith("nearly: ")
    assert 0 < last_step(inv).evidence["moved"]["y"] < 1e-6


def test_a_first_run_that_was_another_shows_in_the_runs_after_it(asked):
    inv, evidence = asked("faulty:kind=warm-up,node=softmax")
    verdict = run_to_run(inv, evidence).verdict
    assert verdict.kind is VerdictKind.NONDETERMINISTIC_RUN
    seen = repeated(inv, evidence.worst_feed)
    assert seen.differing == 0  # the runs after the first are equal


def test_a_session_that_fails_is_the_verdict(asked, investigate, last_step):
    _, evidence = asked("onnxruntime")
    refusing = investigate(softmax_chain(), CHAIN_FEED, target="faulty:kind=build-failure,node=tanh")
    assert run_to_run(refusing, evidence).verdict.kind is VerdictKind.BUILD_FAILED
    assert last_step(refusing).answer.startswith("no: ")


def test_how_far_an_output_moved_at_least_follows_from_both_errors(asked):
    """The deployed run is off by 5 %, a repeat by 20 %: they are 15 % apart at least."""
    inv, evidence = asked("faulty:kind=scale,node=softmax,amount=1.05")
    worst = evidence.worst_feed
    golden = np.asarray(inv.golden.outputs(worst.feed)["y"])
    assert from_first(inv, worst, "y", golden * np.float32(1.2)) == pytest.approx(0.15, rel=1e-4)
    assert from_first(inv, worst, "y", np.asarray(inv.deployed(worst.feed)["y"])) == 0.0
    assert from_first(inv, worst, "y", golden[:1]) == 0.0  # as many as it finds: nothing is known


@pytest.mark.parametrize(("rate", "words"), [(Rate(1, 20), ", in 1 of 20 runs"), (Rate(19, 20), None)])
def test_a_rare_difference_is_said_to_be(asked, rate, words):
    inv, evidence = asked("onnxruntime:optimization=none")
    verdict = unstable(inv, evidence.feed, "y", 0.25, rate)
    assert (words in verdict.summary) if words else (" runs" not in verdict.summary)
    assert not verdict.culprits  # nobody sees it begin
    assert verdict.confidence_on("real") < 1.0


@pytest.mark.parametrize(("builds", "vary", "moved"), [(2, True, 0.0), (1, True, 0.5), (2, False, 0.5)])
def test_what_an_earlier_build_ran_is_not_compared_as_a_run_of_this_one(monkeypatch, builds, vary, moved):
    """Seen on TensorRT in fp16 without a range: another batch size was fed, and the next run differed by 4.7e-5."""
    monkeypatch.setattr(module, "builds_vary", lambda inv: vary)
    monkeypatch.setattr(module, "from_first", lambda *_: 0.5)
    inv = types.SimpleNamespace(question=types.SimpleNamespace(target="target", feeds=["feed"]))
    first = Measurement(MemoryStore({"y": np.zeros(1)}), builds_made=builds)
    worst = types.SimpleNamespace(metrics={"y": None})
    assert since_deployed(inv, worst, first) == {"y": moved}
