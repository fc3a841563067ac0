"""Searching a precision in this process: goals, errors, interruptions, formats, and what is written."""

import json
import math

import numpy as np
import pytest

from engine_scripts import engine_file
from precision_numbers import write_fusing, write_loud
from tensortriage.errors import UsageError
from tensortriage.model.model import Model
from tensortriage.precision.search.request import GoalRequest, PrecisionMode, PrecisionRequest
from tensortriage.runs.commands.check import CheckSpec
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.dtype import Precision
from tensortriage.workflows.find_precision import find_precision

pytestmark = pytest.mark.slow

FP16 = "emulate:precision=fp16"


class Listening:
    """Hears everything; may press Ctrl-C at a word."""

    def __init__(self, stop_at=""):
        self.heard = []
        self._stop_at = stop_at

    def progress(self, text):
        self.tell(text)

    def tell(self, text):
        self.heard.append(text)
        if self._stop_at and text.startswith(self._stop_at):
            raise KeyboardInterrupt


@pytest.fixture
def loud(tmp_path):
    return write_loud(tmp_path)


def search(folder, listener=None, **wanted):
    wanted = {"target": FP16, "output": folder / "out" / "mixed.onnx", **wanted}
    if wanted["output"] is not None:
        wanted["output"].parent.mkdir(exist_ok=True)
    feeding = FeedRequest(paths=[str(folder / "m.npz")])
    request = PrecisionRequest(model=folder / "m.onnx", feeding=feeding, case=folder / "case", **wanted)
    return find_precision(request, listener=listener or Listening())


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("goal", "kept"),
    [
        (GoalRequest(), 2),
        (GoalRequest(sqnr_db=40.0), 2),
        (GoalRequest(sqnr_db=80.0), 20),
        (GoalRequest(metric=lambda outputs, feed: float(np.isfinite(outputs["y"]).all())), 2),
    ],
    ids=["default", "sqnr", "strict", "metric"],
)
def test_goals(tmp_path, loud, goal, kept):
    plan = search(tmp_path, goal=goal)
    assert set(loud) <= set(plan.kept)
    assert (len(plan.nodes) == kept) if kept == 2 else (len(plan.nodes) > 5)
    assert {node.reason for node in plan.nodes if node.node in loud} == {
        f"constant '{name}.plus' reaches 100,000 > 65,504" for name in loud
    }
    written = json.loads((tmp_path / "out" / "precision.json").read_text())
    assert written["kept"] == list(plan.kept)
    assert written["format"] == "tensortriage.precision/1"


@pytest.mark.lengthy
def test_everything_is_low_when_nothing_needs_more(tmp_path, loud):
    plan = search(tmp_path, target="emulate:precision=bf16", goal=GoalRequest(sqnr_db=3.0), output=None)
    assert plan.kept == ()
    assert plan.low_share == 1.0
    assert plan.files == {}


def test_bf16_holds_what_fp16_cannot(tmp_path, loud):
    plan = search(tmp_path, target="emulate:precision=bf16", goal=GoalRequest(sqnr_db=20.0))
    assert not {node.node for node in plan.nodes} & set(loud)


def test_what_an_engine_cannot_build_in_the_format_is_kept(tmp_path, loud):
    """ONNX Runtime's CPU provider refuses most operators in bf16: those it has must not be kept for that."""
    plan = search(tmp_path, target="onnxruntime:precision=bf16", goal=GoalRequest(sqnr_db=3.0), output=None)
    assert plan.error.measured is not None
    assert math.isfinite(plan.error.measured)
    assert plan.pareto[0].within is False


def test_a_random_feed_is_said_to_be_one(tmp_path, loud):
    request = PrecisionRequest(model=tmp_path / "m.onnx", output=None, target=FP16, case=tmp_path / "case")
    assert find_precision(request, listener=Listening()).inputs == "random"


@pytest.mark.lengthy
def test_an_interrupted_search_writes_what_is_enough_and_goes_on_later(tmp_path, loud):
    target = "onnxruntime:precision=fp16"
    plan = search(tmp_path, Listening(stop_at="build 3"), target=target)
    assert plan.interrupted
    assert plan.minimality == "budget"
    assert plan.kept == tuple(loud)
    assert (tmp_path / "out" / "mixed.onnx").exists()
    again = search(tmp_path, target=target)
    assert not again.interrupted
    assert again.minimality == "one-minimal"
    assert again.known >= plan.builds


def test_an_interruption_before_anything_is_asked_writes_the_model_as_it_is_and_later_what_was_found(tmp_path, loud):
    nothing = search(tmp_path, Listening(stop_at="recording the reference"))
    written = Model.load(tmp_path / "out" / "mixed.onnx")
    assert written.fingerprint == Model.load(tmp_path / "m.onnx").fingerprint
    assert (nothing.confirmed, nothing.interrupted, len(nothing.nodes)) == (False, True, len(written.graph.nodes))
    whole = search(tmp_path)
    before = (tmp_path / "out" / "mixed.onnx").read_bytes()
    again = search(tmp_path, Listening(stop_at="recording the reference"))
    assert (again.kept, again.interrupted) == (whole.kept, True)
    assert (tmp_path / "out" / "mixed.onnx").read_bytes() == before


@pytest.mark.lengthy
def test_the_curve_falls_as_nodes_are_kept(tmp_path, loud):
    plan = search(tmp_path, latency=True)
    emulated = [point for point in plan.pareto if not point.measured]
    assert [point.kept for point in emulated] == sorted(point.kept for point in emulated)
    assert emulated[-1].error <= emulated[0].error
    measured = [point for point in plan.pareto if point.measured]
    assert {0, 2} < {point.kept for point in measured}
    assert all(math.isfinite(point.latency_ms) and point.latency_ms > 0 for point in measured)


def test_prefixes_come_from_either_end(tmp_path, loud):
    forward = search(tmp_path, mode=PrecisionMode.BISECT)
    backward = search(tmp_path, mode=PrecisionMode.BISECT, reverse=True)
    assert [node.node for node in forward.nodes][-1] == loud[1]
    assert [node.node for node in backward.nodes][-1] == loud[0]
    assert forward.minimality == "prefix"


@pytest.mark.parametrize(
    ("wanted", "slug"),
    [
        ({"target": ""}, "precision-judge"),
        ({"check": CheckSpec(words=("true",))}, "precision-judge"),
        ({"target": "onnxruntime"}, "precision-low-missing"),
        ({"target": "", "check": CheckSpec(words=("true",))}, "precision-low-missing"),
        ({"target": "emulate:precision=fp8e5m2"}, "precision-not-typed"),
        ({"target": "onnxruntime", "low": Precision.FP32}, "precision-low-missing"),
        ({"target": FP16, "low": Precision.BF16}, "precision-formats-many"),
    ],
)
def test_errors(tmp_path, loud, wanted, slug):
    with pytest.raises(UsageError) as raised:
        search(tmp_path, **wanted)
    assert raised.value.slug == slug
    assert raised.value.cure


def test_goals_must_be_reachable(tmp_path, loud):
    with pytest.raises(UsageError) as raised:
        search(tmp_path, goal=GoalRequest(metric=lambda outputs, feed: 0.5, metric_min=0.6))
    assert raised.value.slug == "precision-goal-unreachable"


@pytest.mark.lengthy
def test_what_an_engine_runs_as_one_is_kept_as_one(tmp_path, loud):
    graph = Model.load(tmp_path / "m.onnx").graph
    neighbour = next(iter(graph.consumers(graph.node(loud[0]).outputs[0])))
    listener = Listening()
    target = write_fusing(tmp_path, [loud[0], neighbour.name])
    plan = search(tmp_path, listener, target=target, low=Precision.FP16)
    assert set(plan.kept) == {*loud, neighbour.name}
    assert plan.minimality == "one-minimal"
    assert any("fusion groups" in words for words in listener.heard)
    again = search(tmp_path, target=target, low=Precision.FP16)
    assert (again.kept, again.builds, again.known) == (plan.kept, 0, plan.builds + plan.known)


DEAF = """
import onnxruntime as ort

class Deaf:
    def compile(self, model, options):
        return Session({original!r})

class Session:
    def __init__(self, path):
        self.session = ort.InferenceSession(path)

    def run(self, feed):
        names = [o.name for o in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, feed)))
"""


def test_a_target_that_is_good_enough_as_it_is_is_not_searched(tmp_path, loud):
    """Rounding would not do, but this engine computes in fp32 whatever the types say."""
    file = engine_file(DEAF.format(original=str(tmp_path / "m.onnx")))
    plan = search(tmp_path, target=f"script:{file}:Deaf", low=Precision.FP16)
    assert (plan.kept, plan.builds, plan.minimality) == ((), 2, "one-minimal")
    assert plan.emulated <= 1
