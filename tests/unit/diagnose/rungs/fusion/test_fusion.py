"""Faults of several ops: what no piece shows, what marking cures, and where what marking hides is found."""

import numpy as np
import pytest

from diagnosing import ask, named, step
from engine_scripts import engine_file

pytestmark = pytest.mark.slow

CHAIN = """main (float[4, 8] x) => (float[4, 8] y) {
    a = Sin(x)
    b = Mul(a, x)
    c = Tanh(b)
    d = Add(c, a)
    e = Exp(d)
    y = Sub(e, x)
}"""
NAMES = ("sin", "mul", "tanh", "add", "exp", "sub")

UNMARKED = """
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.model.model import Model


class Session:
    def __init__(self, session, wrong):
        self.session, self.wrong = session, wrong

    def run(self, feed):
        return {name: array * (1.1 if self.wrong else 1.0) for name, array in self.session.run(feed).items()}


class Engine:
    def compile(self, model, options):
        found = Model.load(model)
        whole = [spec.name for spec in found.inputs] == ["x"] and "tanh" in found.graph  # as no piece has
        marked = "c" in {spec.name for spec in found.outputs}
        return Session(OnnxRuntimeEngine().compile(model, {"optimization": "none"}), whole and not marked)
"""


def feed():
    return {"x": np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)}


@pytest.mark.lengthy
def test_a_fault_that_only_the_whole_shows_and_one_mark_cures(tmp_path):
    file = engine_file(UNMARKED)
    verdict, _ = ask(tmp_path, named(CHAIN, *NAMES), feed(), f"script:{file}")
    assert verdict.verdict == "fusion-fault", verdict.summary
    assert verdict.breakers == ("c",)  # of six tensors, the one that the engine asks for
    assert [culprit.node for culprit in verdict.culprits] == ["tanh", "add"]  # the ops at both ends of it
    assert verdict.confidence < 0.9  # no piece proves it


def test_an_engine_that_builds_no_piece_is_diagnosed_by_marks_alone(tmp_path):
    refuses = "        if not whole:\n            raise ValueError('no piece of it')\n"
    place = "        marked ="
    file = engine_file(UNMARKED.replace(place, refuses + place))
    verdict, _ = ask(tmp_path, named(CHAIN, *NAMES), feed(), f"script:{file}", repro=False)
    assert verdict.verdict == "fusion-fault", verdict.summary
    assert verdict.breakers == ("c",)
    assert "pieces of it cannot be built there" in verdict.summary


@pytest.mark.lengthy
def test_ops_far_apart_are_found_without_a_plan_and_without_marks(tmp_path):
    # sin's result is used by mul and, past it, by add: marking a stops the fusion, so figures in context say nothing.
    target = "fault:kind=scale,amount=1.5,node=sin,fused_with=add,plan=false"
    verdict, _ = ask(tmp_path, named(CHAIN, *NAMES), feed(), target)
    assert verdict.verdict == "fusion-fault", verdict.summary
    assert [culprit.node for culprit in verdict.culprits] == ["sin", "add"]
    assert verdict.breakers == ("a",)
    assert step(verdict, "are ops wrong only together").answer.startswith("yes: Sin + Add ('sin', 'add')")


@pytest.mark.lengthy
def test_a_nan_that_only_a_fusion_makes_is_a_fusion_fault(tmp_path):
    target = "fault:kind=nan,node=mul,fused_with=tanh"
    verdict, _ = ask(tmp_path, named(CHAIN, *NAMES), feed(), target)
    assert verdict.verdict == "fusion-fault", verdict.summary
    assert {culprit.node for culprit in verdict.culprits} == {"mul", "tanh"}
    assert verdict.breakers == ("b",)


WIRED = """
from tensortriage.model.model import Model
from tensortriage_testing import FaultyEngine


class Engine:
    def compile(self, model, options):
        graph = Model.load(model).graph
        wired = "mul" in graph and "tanh" in graph and graph.node("mul").outputs[0] in graph.node("tanh").inputs
        fault = {"kind": "scale", "amount": "1.5", "node": "tanh"} if wired else {}
        return FaultyEngine().compile(model, {**fault, "plan": PLAN})
"""


@pytest.mark.lengthy
def test_a_fault_that_marks_do_not_hide_is_found_where_the_error_jumps(tmp_path):
    # Wrong whenever the two ops are wired to each other, marked or not: the instrumented run can be trusted here.
    file = engine_file(WIRED.replace("PLAN", "'false'"))
    verdict, _ = ask(tmp_path, named(CHAIN, *NAMES), feed(), f"script:{file}")
    assert verdict.verdict == "fusion-fault", verdict.summary
    assert [culprit.node for culprit in verdict.culprits] == ["mul", "tanh"]
    assert verdict.breakers == ()  # no mark cures it
    found = step(verdict, "are ops wrong only together")
    assert found.evidence["found_in"] == "windows of radius 1 around the largest jumps"


def test_a_nan_that_an_op_makes_only_behind_another_though_both_are_marked(tmp_path):
    # Its operands are right and give no reason for a NaN; alone, on the same operands, it stays finite.
    wired = WIRED.replace('"kind": "scale", "amount": "1.5"', '"kind": "nan"').replace("PLAN", "'false'")
    verdict, _ = ask(tmp_path, named(CHAIN, *NAMES), feed(), f"script:{engine_file(wired)}")
    assert verdict.verdict == "fusion-fault", verdict.summary
    assert [culprit.node for culprit in verdict.culprits] == ["mul", "tanh"]
    assert "alone, on golden ones, it stays finite" in step(verdict, "where does the NaN or Inf originate").answer


@pytest.mark.lengthy
def test_a_function_is_tried_with_what_feeds_it_where_the_plan_keeps_them_apart(tmp_path):
    # The compiler behind the plan fuses on: each op is a region of its own in it, and right alone.
    file = engine_file(WIRED.replace("PLAN", "'true'"))
    verdict, _ = ask(tmp_path, named(CHAIN, *NAMES), feed(), f"script:{file}")
    assert [culprit.node for culprit in verdict.culprits] == ["mul", "tanh"]
    assert step(verdict, "are ops wrong only together").evidence["found_in"] == "functions with the ops that feed them"


@pytest.mark.lengthy
def test_a_nan_far_behind_ops_that_are_wrong_only_together(tmp_path):
    # Together they shift the value below zero, where the log has none; marks do not hide it, alone both are right.
    text = CHAIN.replace("e = Exp(d)", "e = Log(d)").replace("d = Add(c, a)", "d = Add(c, two)")
    text = text.replace("(float[4, 8] y) {", "(float[4, 8] y) <float two = {2}> {")
    wired = WIRED.replace("PLAN", "'true'").replace('"scale", "amount": "1.5"', '"offset", "amount": "-20"')
    file = engine_file(wired)
    verdict, _ = ask(tmp_path, named(text, *NAMES), feed(), f"script:{file}", repro=False)
    assert verdict.verdict == "fusion-fault", verdict.summary
    assert [culprit.node for culprit in verdict.culprits] == ["mul", "tanh"]
