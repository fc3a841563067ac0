"""Captures: what an engine shows by itself is not marked, and the rest is; values come in the order asked for."""

import contextlib

import numpy as np
import pytest

from models import parse
from tensortriage.engines.base import Availability
from tensortriage.engines.capabilities import Observes
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine, OnnxRuntimeSession
from tensortriage.engines.onnxruntime.settings import UNOPTIMIZED
from tensortriage.engines.session_capabilities import ShowsValues
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import RunFailed
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.observation import capture as module
from tensortriage.runs.observation import runner as runner_module
from tensortriage.runs.observation.capture import capture
from tensortriage.runs.observation.experiment import Experiment, ObservedValues
from tensortriage.runs.observation.runner import Runner
from tensortriage.runs.observation.sessions import Sessions
from tensortriage.runs.tally import Tally
from tensortriage.runs.workspace import Workspace
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

MODEL = """
<ir_version: 8, opset_import: ["" : 13]>
net (float[2] x) => (float[2] e) {
   [n0] a = Relu (x)
   [n1] b = Exp (a)
   [n2] c = Neg (b)
   [n3] d = Abs (c)
   [n4] e = Sqrt (d)
}
"""
VALUES = ["a", "b", "c", "d", "e"]


class Shows(OnnxRuntimeSession, ShowsValues):
    observation = "unfused"

    def captured(self, feed, values):
        return self.show(feed, values)


class Showing(Observes):
    """ONNX Runtime that shows some values by itself, as an engine with a debug listener does."""

    name = "showing"

    def __init__(self, shown, fails=False, always=False):
        self.shown, self.fails, self.always, self.compiled = shown, fails, always, []
        self._engine = OnnxRuntimeEngine()

    def availability(self):
        return Availability(usable=True)

    def observing(self, options):
        return dict(options) if self.always else {**options, "observe": "unfused"}

    def compile(self, model, options):
        session = self._engine.compile(model, {})
        if self.always or "observe" in options:
            session = Shows(model, UNOPTIMIZED)
            session.show = lambda feed, values: self._captured(feed, values)
        self.compiled.append([spec.name for spec in session.outputs])
        return session

    def _captured(self, feed, values):
        if self.fails:
            raise RunFailed("the listener failed", slug="run-failed")
        return [(value, np.full(2, 7, np.float32)) for value in reversed(values) if value in self.shown]


FEED = Feed("f", {"x": np.array([1, 4], np.float32)}, "real")


def sessions_in(workspace, tally):
    make = lambda spec, model, build: Runner(spec, model, workspace=workspace, tally=tally)  # noqa: E731
    return Sessions(make, by_content=True)


def asked(values, specs=None):
    wanted = ObservedValues(tuple(values), specs or {})
    return Experiment(engine=EngineSpec("showing"), model=parse(MODEL), feed=FEED, observed=wanted)


def captured(monkeypatch, tmp_path, engine, *, specs=None, batch_bytes=None, unseen=None):
    for place in (module, runner_module):
        monkeypatch.setattr(place, "create", lambda spec, limits=None: engine)
    tally = Tally()
    with Workspace(tmp_path) as workspace, contextlib.closing(sessions_in(workspace, tally)) as sessions:
        wanted, more = asked(VALUES, specs), {"batch_bytes": batch_bytes, "unseen": unseen}
        found = list(capture(wanted, sessions=sessions, tally=tally, **more))
    return found, tally


@pytest.mark.parametrize("shown", [[], ["b"], ["a", "e"], ["b", "c", "d"], VALUES])
def test_what_is_shown_is_not_marked(monkeypatch, tmp_path, shown):
    engine = Showing(shown)
    found, tally = captured(monkeypatch, tmp_path, engine)
    assert [name for name, _ in found] == VALUES
    assert [name for name, array in found if (array == 7).all()] == shown
    marked = [name for name in VALUES if name not in shown]
    assert engine.compiled == [["e"], *([marked] if marked else [])]  # the model as it is, then the marked one
    assert tally.seen == {**({"unfused": len(shown)} if shown else {}), **({"marked": len(marked)} if marked else {})}


def test_values_are_in_the_type_of_the_model(monkeypatch, tmp_path):
    """A value that the engine holds in float64 here, and in fp16 or bf16 on an accelerator."""
    engine = Showing(["a", "b"])
    held = {"a": np.full(2, 7, np.float64), "b": np.full(2, 7, np.int8)}
    engine._captured = lambda feed, values: [(value, held[value]) for value in values if value in held]
    specs = {name: ValueSpec(name, DType.FLOAT, (2,)) for name in VALUES}
    found, _ = captured(monkeypatch, tmp_path, engine, specs=specs)
    assert [array.dtype for _, array in found[:2]] == [np.float32, np.int8]  # an integer is no float


def test_the_rest_is_marked_in_batches(monkeypatch, tmp_path):
    engine = Showing(["a", "b", "c"])
    found, _ = captured(monkeypatch, tmp_path, engine, batch_bytes=2 * module.UNKNOWN_BYTES)
    assert [name for name, _ in found] == VALUES
    assert engine.compiled == [["e"], ["d", "e"]]  # a and b, which are small: the rest at once, d and e marked


def test_batches_become_smaller_where_values_of_unknown_size_are_larger_than_assumed(monkeypatch, tmp_path):
    engine, large = Showing(["a", "b", "c", "d"]), np.zeros(2 * module.UNKNOWN_BYTES, np.int8)
    asked = []
    engine._captured = lambda feed, values: asked.append(list(values)) or [(value, large) for value in values]
    found, _ = captured(monkeypatch, tmp_path, engine, batch_bytes=2 * module.UNKNOWN_BYTES)
    assert [name for name, _ in found] == VALUES
    assert asked == [["a", "b"], ["c"], ["d"], ["e"]]


def test_an_engine_that_fails_when_it_is_watched_has_its_values_marked(monkeypatch, tmp_path):
    engine = Showing(VALUES, fails=True)
    found, tally = captured(monkeypatch, tmp_path, engine)
    assert [name for name, _ in found] == VALUES
    assert tally.seen == {"marked": 5}


def test_outputs_are_seen_where_no_marked_model_is_taken(monkeypatch, tmp_path):
    """A program of PyTorch shows what its trace has, and returns its own outputs whatever is marked."""
    engine, left_out = Showing(["a", "b"]), []
    compiled = engine.compile

    def compile_as_it_is(model, options):
        if [output.name for output in Model.load(model).outputs] != ["e"]:
            raise RunFailed("it has outputs of its own", slug="engine-outputs-wrong")
        return compiled(model, options)

    engine.compile = compile_as_it_is
    found, _ = captured(monkeypatch, tmp_path, engine, unseen=lambda hidden: left_out.extend(hidden.left_out))
    assert [name for name, _ in found] == ["a", "b", "e"]
    assert left_out == ["c", "d"]
    np.testing.assert_array_equal(found[-1][1], np.sqrt(np.exp([1, 4])).astype(np.float32))  # by numpy


@pytest.mark.parametrize("fails", [False, True])
def test_an_open_session_is_watched_if_it_shows_values_as_it_is(monkeypatch, tmp_path, fails):
    engine = Showing({"a", "b", "e"}, fails, always=True)
    for place in (module, runner_module):
        monkeypatch.setattr(place, "create", lambda spec, limits=None: engine)
    experiment, tally = asked(["a", "b"]), Tally()
    with (
        Workspace(tmp_path) as workspace,
        contextlib.closing(sessions_in(workspace, tally)) as sessions,
        sessions.held(experiment),
        sessions.open(experiment) as deployed,
    ):
        deployed.run(FEED.tensors)
        session = deployed.build()
        for _ in range(2):
            list(capture(experiment, sessions=sessions, tally=tally))
        deployed.run(FEED.tensors)
        assert (deployed.build() is session) is not fails  # what failed is let go, and built when it is needed again
    assert engine.compiled == ([["e"], ["a", "b"], ["e"], ["a", "b"], ["e"]] if fails else [["e"]])
