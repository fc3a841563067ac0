"""Typed models as candidates on an engine: what is asked, what is kept of it, how engines are told to obey types."""

import math

import numpy as np
import onnx
import pytest

import models
import running
from registered_engines import register
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.precision.goal import ErrorGoal, GoalSample
from tensortriage.precision.selection.switchable_model import stage_of
from tensortriage.precision.selection.typed_candidates import WARM_UP, EngineSetup, TypedCandidates, deployed, timed
from tensortriage.runs.case import Case
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision

TEXT = """g (float[2, 4] x) => (float[2, 4] y) <float[1] tiny = {0.00007}> {
    [square] a = Mul(x, x)
    [turn] b = Reshape(a, shape)
    [back] c = Mul(b, tiny)
    [tail] y = Sqrt(c)
}""".replace("> {", ", int64[2] shape = {2, 4}> {")
MODEL = models.parse(TEXT)
FEED = Feed("large", {"x": np.full((2, 4), 300, np.float32)}, Origin.REAL)
"""The square, 90,000, is beyond the largest number of fp16, 65,504."""
SAMPLE = GoalSample(FEED, running.run(MODEL, FEED.tensors))
TYPED, EMULATED = EngineSpec("float64", {"rounding": "results"}), EngineSpec("emulate", {"precision": "fp16"})
FAILING = EngineSpec("faulty", {"kind": "build-failure", "node": "square"})
LOUD = {"square", "back"}
HALF, FLOAT = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT


@pytest.fixture
def candidates(tmp_path, monkeypatch):
    """Return what makes candidates on an engine, in one case."""
    register(monkeypatch, tmp_path, faulty="tensortriage_testing:FaultyEngine")
    with Case(tmp_path / "case") as case, Lab(case) as lab:
        stage = stage_of(MODEL, Precision.FP16, value_specs(MODEL), typed=True)
        told = []
        lab.progress = told.append

        def make(spec=TYPED, **given):
            settings = {"samples": [SAMPLE], "goal": ErrorGoal({"y": 0.01}, "at most 1 %"), "lab": lab, **given}
            made = TypedCandidates(stage, bench=EngineSetup(spec=spec, **settings))
            made.told = told
            return made

        yield make


def types(model):
    """Return the element type that each node of the original computes in: that of its result."""
    message = onnx.shape_inference.infer_shapes(running.ir.to_proto(model.ir))
    known = {value.name: value.type.tensor_type.elem_type for value in message.graph.value_info}
    return {node.name: known[node.output[0]] for node in message.graph.node if node.name in ("square", "turn", "back")}


@pytest.mark.parametrize("spec", [TYPED, EMULATED], ids=str)
def test_keeping_what_overflows_is_good_enough_and_less_is_not(candidates, spec):
    made = candidates(spec)
    assert made.read(LOUD).within
    assert made.read(LOUD).error < 1e-3  # half a unit of fp16 is 2**-11 of the result
    for kept in ({"square"}, set()):
        assert not made.read(kept).within
        assert made.read(kept).ratio > 1


def test_a_kept_set_is_asked_about_once_and_known_in_the_case(candidates):
    made = candidates()
    first = made.read(["square", "back"])
    count = len(made.told)
    assert made.read({"back", "square"}) is first
    assert made.asked == 2  # with what the user asked for
    assert candidates().read(LOUD) == first
    assert len(made.told) == count
    candidates(latency=True).read(LOUD)
    strict = candidates(goal=ErrorGoal({"y": 1e-9}, "next to nothing")).read(LOUD)
    assert (strict.within, len(made.told)) == (False, count + 2)


def test_what_hands_numbers_on_between_kept_nodes_is_kept_too(candidates):
    made = candidates()
    assert made.complete(LOUD) == LOUD | {"turn"}
    assert types(made.model(LOUD)) == dict.fromkeys(["square", "turn", "back"], FLOAT)
    assert types(made.model({"tail"})) == dict.fromkeys(["square", "turn", "back"], HALF)


def test_the_model_as_asked_is_run_on_the_engine_as_named(candidates):
    assert candidates().as_asked().error < 1e-6
    assert math.isinf(candidates(EMULATED).as_asked().error)


def test_times_are_measured_where_they_are_wanted(candidates):
    assert candidates().read(LOUD).latency_ms is None
    assert candidates(latency=True).read(LOUD).latency_ms > 0


def test_runs_are_timed_after_a_warm_up_until_there_are_enough():
    runs = []
    assert timed(lambda feed: runs.append(feed) or 0.01, SAMPLE) > 0
    assert len(runs) == WARM_UP + 50
    assert runs[0] is FEED


def test_a_failure_of_the_engine_is_a_reading(candidates):
    reading = candidates(FAILING).read(LOUD)
    assert reading.failure
    assert (reading.within, reading.ratio, reading.latency_ms) == (False, math.inf, None)


def test_the_engine_tells_what_it_runs_as_one_and_the_emulation_does_not(candidates):
    made = candidates()
    assert "tail" in {name for names in made.fused() for name in names}
    assert made.asked == 2
    assert made.audited(LOUD) is not None
    emulated = candidates(EMULATED)
    assert (emulated.fused(), emulated.audited(LOUD), emulated.asked) == ((), None, 1)


def test_a_plan_that_cannot_be_told_is_none(candidates):
    made = candidates(FAILING)
    assert made.fused() == ()
    assert made.audited(LOUD) is None


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("openvino:precision=fp16,kept=a", "openvino:precision=dynamic"),
        ("tensorrt", "tensorrt:precision=mixed"),
        ("onnxruntime:precision=fp16,threads=1", "onnxruntime:threads=1"),
        ("emulate:precision=fp16", str(PLAIN)),
    ],
)
def test_engines_are_told_to_follow_the_types(spec, told):
    assert str(deployed(EngineSpec.parse(spec))) == told
