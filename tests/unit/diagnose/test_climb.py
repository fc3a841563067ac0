"""The way up the ladder: where it ends, what is kept of it, and what is said where nothing was decisive."""

import numpy as np
import pytest

from diagnosing import CHAIN_FEED, softmax_chain, step
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.diagnose.climb import climb, inconclusive, match, out_of_budget
from tensortriage.diagnose.ladder import ONCE_IT_FAILS
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.injection import Influence
from tensortriage.diagnose.measurements.local_errors.local import local_errors
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.model.model import Model
from tensortriage_testing import save_model

FAULT = "faulty:kind=scale,node=softmax,amount=1.05"


@pytest.fixture
def asked(investigate, compared):
    def ask(target="onnxruntime", feeds=1, **question):
        inv = investigate(softmax_chain(), *[CHAIN_FEED] * feeds, target=target, **question)
        return inv, compared(inv)

    return ask


def test_agreement_is_surer_on_more_feeds(asked):
    one, two = (match(*asked(feeds=count)) for count in (1, 2))
    assert one.kind is two.kind is VerdictKind.MATCH
    assert one.confidence_on("real") < two.confidence_on("real")
    assert "on 1 feed:" in one.summary
    assert "on 2 feeds:" in two.summary
    assert one.summary.endswith("on 1 feed: every number of every output is equal")
    near = "faulty:kind=scale,node=softmax,amount=1.000001"
    assert "noise floor" in match(*asked(near)).summary
    assert "within the tolerance given" in match(*asked(near, tolerance=PolygraphyTolerance())).summary


def test_where_nothing_is_decisive_it_is_said_what_was_excluded(asked):
    inv, evidence = asked(FAULT)
    local = local_errors(inv, evidence.feed)
    nothing, ops = inconclusive(inv, evidence), inconclusive(inv, evidence.with_(local=local))
    weighed = inconclusive(inv, evidence.with_(local=local, influence=Influence({}, 0.0, 0.25)))
    assert {each.kind for each in (nothing, ops, weighed)} == {VerdictKind.INCONCLUSIVE}
    assert "could not be run one by one" in nothing.summary
    assert "no op or group of ops reproduces it" in ops.summary
    assert "explain only 25 % of the error" in weighed.summary
    assert nothing.next[0].startswith("triage debug reduce")


def test_a_spent_budget_leaves_what_is_known_and_what_was_not_asked(asked):
    inv, failing = asked(FAULT, budget_seconds=100.0)
    _, passing = asked()
    first = ONCE_IT_FAILS[0]
    fails = out_of_budget(inv, failing, {first})
    assert "softmax,amount=1.05 fails: output 'y'" in fails.summary
    assert "agrees on 1 feeds" in out_of_budget(inv, passing, ()).summary
    assert "nothing is known" in out_of_budget(inv, Evidence(), ()).summary
    assert fails.kind is VerdictKind.INCONCLUSIVE
    left = step(inv.record, "which questions were skipped").answer
    assert first.title not in left
    assert ONCE_IT_FAILS[-1].title in left


def test_a_budget_that_is_spent_at_once_ends_the_climb(investigate):
    inv = investigate(softmax_chain(), CHAIN_FEED, target=FAULT, budget_seconds=1e-9)
    end = climb(inv)
    assert end.conclusion.kind is VerdictKind.INCONCLUSIVE
    assert "the budget of 1e-09 s is spent" in end.conclusion.summary
    assert end.investigation is inv


@pytest.mark.slow
def test_a_climb_ends_with_the_first_decisive_answer(investigate):
    end = climb(investigate(softmax_chain(), CHAIN_FEED, target=FAULT))
    assert (end.conclusion.kind, end.conclusion.culprits[0].node) == (VerdictKind.LOCAL_FAULT, "softmax")
    assert end.evidence.local is not None
    assert not end.evidence.worst_feed.passes
    assert end.investigation.record.steps


@pytest.mark.slow
@pytest.mark.parametrize("random_too", [True, False])
def test_random_data_are_asked_for_once_real_data_pass(investigate, random_too):
    inv = investigate(softmax_chain(), CHAIN_FEED, random_too=random_too)
    end = climb(inv)
    assert end.conclusion.kind is VerdictKind.MATCH
    assert any("made-up" in each.question for each in end.investigation.record.steps) is random_too
    assert end.evidence.results[0].passes


@pytest.mark.slow
def test_rounding_that_explains_the_outputs_stands(investigate):
    end = climb(investigate(softmax_chain(), CHAIN_FEED, target="emulate:precision=fp16", random_too=False))
    assert end.conclusion.kind is VerdictKind.ROUNDING
    assert end.evidence.local is None


@pytest.mark.slow
def test_another_model_of_the_same_network_is_looked_into_itself(investigate, tmp_path):
    """A changed weight is the verdict; where nothing was changed the ladder continues with the target's own file."""
    message = softmax_chain()
    tensor = message.graph.initializer[0]
    weights = np.float32([1.5, 2, 3, 4, 5, 6, 7, 8])
    tensor.ClearField("float_data")
    tensor.raw_data = weights.tobytes()
    changed = Model.load(save_model(message, tmp_path / "changed.onnx"))
    end = climb(investigate(softmax_chain(), CHAIN_FEED, target_model=changed, random_too=False))
    assert end.conclusion.kind is VerdictKind.MODEL_CHANGED
    assert end.conclusion.culprits[0].node == "scale"
    same = Model.load(save_model(softmax_chain(), tmp_path / "same.onnx"))
    again = climb(investigate(softmax_chain(), CHAIN_FEED, target=FAULT, target_model=same, random_too=False))
    assert (again.conclusion.kind, again.conclusion.culprits[0].node) == (VerdictKind.LOCAL_FAULT, "softmax")
    assert again.investigation.model is same
