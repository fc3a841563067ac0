"""The engine's side in this process: options, availability, plans in terms of ONNX, sessions that build when fed."""

import importlib.util
import json

import numpy as np
import pytest

from models import write
from tensortriage.engines.base import Plan, Region
from tensortriage.engines.capabilities import OffersLadder
from tensortriage.engines.options import read_options
from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import BuildFailed, RunFailed
from tensortriage.model.model import Model
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_engines.tensorrt import engine as tensorrt
from tensortriage_engines.tensorrt.options import OPTIONS, read_settings
from tensortriage_engines.tensorrt.plan import in_terms_of_onnx, shown_value, value_of
from tensortriage_engines.tensorrt.session import TensorRtSession

MODEL = """
<ir_version: 8, opset_import: ["" : 13]>
net (float[N, 4] x) => (float[N, 4] y) <float[4, 4] w = {1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1}> {
   [mm] a = MatMul (x, w)
   [act] b = Relu (a)
   [exp] c = Exp (b)
   [add] d = Add (c, x)
   [soft] y = Softmax (d)
}
"""


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "model.onnx", MODEL)


def settings(**options: str):
    return read_settings(read_options(options, OPTIONS))


# --- is it here? -----------------------------------------------------------------------------------------------------


def test_without_tensorrt_the_commands_to_install_it_are_told(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    available = create(EngineSpec("tensorrt")).availability()
    assert not available.usable
    assert available.reason == "TensorRT is not installed"
    assert "pip install tensorrt cuda-bindings" in available.cure


def test_without_a_driver_that_is_told(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(tensorrt, "_DRIVER", "libno-such-driver.so.1")
    available = create(EngineSpec("tensorrt")).availability()
    assert not available.usable
    assert "no NVIDIA driver" in available.reason


# --- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "tf32"),
        ({"precision": "fp8"}, "fp8e4m3"),
        ({"precision": "mixed"}, "fp32"),
        ({"precision": "int8"}, "int8"),
    ],
)
def test_the_precision_of_options(options, word):
    assert create(EngineSpec("tensorrt")).precision(options) == word


def test_rungs_go_from_fp32_without_optimizations_to_what_was_asked():
    engine = create(EngineSpec("tensorrt"))
    assert isinstance(engine, OffersLadder)
    given = {"precision": "fp16", "opt_level": "3"}
    rungs = engine.ladder(given)
    words = [(options.get("precision"), options["opt_level"]) for _, options in rungs]
    assert words == [("fp32", "0"), ("fp32", "3"), ("fp16", "0"), ("fp16", "3")]
    for _, options in rungs:
        read_settings(read_options(options, OPTIONS))  # all of them are understood
    typed = engine.ladder({"precision": "mixed"})
    assert [options for _, options in typed] == [{"precision": "mixed", "opt_level": "0"}, {"precision": "mixed"}]
    assert len(engine.ladder({"load_engine": "model.plan"})) == 1
    assert [words for words, _ in engine.ladder({"precision": "fp32"})] == ["precision=fp32, opt_level=0", "as given"]


def test_a_release_without_levels_has_no_rungs_of_them(monkeypatch):
    """8.5 was started twice, and refused twice, to learn that it has none."""
    monkeypatch.setitem(tensorrt._PROBED, (("worker", "python3.10"),), {"opt_level": False})
    engine, place = create(EngineSpec("tensorrt")), {"worker": "python3.10"}
    assert [words for words, _ in engine.ladder({**place, "precision": "fp16"})] == ["precision=fp32", "as given"]
    assert [words for words, _ in engine.ladder({**place, "precision": "fp32"})] == ["as given"]
    assert [words for words, _ in engine.ladder({**place, "precision": "mixed"})] == ["as given"]
    assert len(engine.ladder({"precision": "fp16"})) == 4  # of another place nothing is known


def test_an_engine_from_a_file_has_options_without_it():
    engine = create(EngineSpec("tensorrt"))
    assert engine.without_file({"load_engine": "model.plan", "precision": "fp16"}) == {"precision": "fp16"}
    assert engine.without_file({"precision": "fp16"}) is None


# --- plans -----------------------------------------------------------------------------------------------------------


def placed(path, *regions: Region) -> list[tuple[str, ...]]:
    return [region.nodes for region in in_terms_of_onnx(Plan(regions), path).regions]


def test_listed_nodes_are_taken_as_they_are(path):
    assert placed(path, Region("mm + act", ("mm", "act")), Region("r", ("exp",)), Region("s", ("add", "soft"))) == [
        ("mm", "act"), ("exp",), ("add", "soft"),
    ]  # fmt: skip


def test_a_foreign_region_executes_all_between_its_inputs_and_outputs(path):
    region = Region("{ForeignNode[mm...soft]}", ("mm", "...", "soft"), inputs=("x",), outputs=("y",))
    assert placed(path, region) == [("mm", "act", "exp", "add", "soft")]


def test_two_foreign_regions_share_the_nodes_at_the_value_between_them(path):
    first = Region("f", ("mm", "...", "act"), inputs=("x",), outputs=("b",))
    second = Region("g", ("exp", "...", "soft"), inputs=("b", "x"), outputs=("y",))
    assert placed(path, first, second) == [("mm", "act"), ("exp", "add", "soft")]


def test_a_region_without_names_is_told_by_the_values_it_makes(path):
    made = Region("__myl_Fc_myl0_0", (), inputs=("x",), outputs=("fp16::b",))
    rest = Region("__myl_Res_myl0_1", (), inputs=("fp16::b", "x"), outputs=("y",))
    assert placed(path, made, rest) == [("mm", "act"), ("exp", "add", "soft")]


def test_copies_execute_nothing(path):
    copy = Region("Reformatting CopyNode for Output Tensor 0 to soft", (), "Reformat", outputs=("y",))
    assert placed(path, copy, Region("all", ("soft",))) == [(), ("mm", "act", "exp", "add", "soft")]


@pytest.mark.parametrize(
    ("word", "node"),
    [("mm_2", "mm"), ("node_of_y", "soft"), ("b", "act"), ("(Unnamed Layer* 3) [Shuffle]", ""), ("act_output", "act")],
)
def test_names_that_tensorrt_makes_of_nodes(path, word, node):
    (nodes, *_) = placed(path, Region("r", (word,)), Region("rest", ("mm", "act", "exp", "add", "soft")))
    assert (node in nodes) if node else nodes == ()


def test_only_sure_names_are_captured(path):
    graph = Model.load(path).graph
    assert [shown_value(name, graph) for name in ("a", "fp16::b", "c_2", "x", "stranger")] == ["a", "b", "", "", ""]


def test_values_behind_the_names_of_tensors(path):
    graph = Model.load(path).graph
    assert [value_of(name, graph) for name in ("a", "fp16::b", "c_myl0_4", "stranger", "x")] == ["a", "b", "c", "", ""]


# --- sessions --------------------------------------------------------------------------------------------------------


class Built:
    """What a build returns; notes what it is asked."""

    def __init__(self, ranges, shown=()):
        self.ranges, self.shown, self.closed, self.seconds = ranges, dict(shown), False, None
        self.asked = []
        self.info = {"observation": "unfused", "trtexec": f"trtexec {json.dumps(ranges)}"}

    def run(self, feed):
        return {"y": feed["x"] * 2}

    def answer(self, question, feed=None, *, wanted):
        self.asked.append(wanted)
        found = {name: array for name, array in self.shown.items() if name in wanted}
        return {"shown": list(self.shown)}, {**found, "output:y": feed["x"]}

    def allow(self, seconds):
        self.seconds = seconds

    def plan(self):
        return Plan(())

    def close(self):
        self.closed = True


@pytest.fixture
def opened():
    built: list[Built] = []

    def build(ranges):
        built.append(Built(dict(ranges), {"fp16::a": np.ones(2), "odd": np.zeros(1)}))
        return built[-1]

    spec = ValueSpec("x", DType.FLOAT, ("N", 3))
    value = {"fp16::a": "a", "a": "a"}
    session = TensorRtSession(
        build, inputs=[spec], outputs=[], open_inputs=["x"], value_of=lambda name: value.get(name, "")
    )
    return session, built


def fed(batch: int) -> dict[str, np.ndarray]:
    return {"x": np.ones((batch, 3), np.float32)}


def test_an_engine_is_built_for_what_is_fed_and_widened(opened):
    session, built = opened
    assert (built, session.command()) == ([], "")
    session.allow(7)
    for batch in (2, 2, 5, 3, 1):
        assert session.run(fed(batch))["y"].shape == (batch, 3)
    assert [item.ranges["x"] for item in built] == [((2, 3),) * 3, ((2, 3), (2, 3), (5, 3)), ((1, 3), (2, 3), (5, 3))]
    assert [item.closed for item in built] == [True, True, False]
    assert built[-1].seconds == 7
    session.close()
    assert built[-1].closed
    with pytest.raises(RunFailed, match="closed"):
        session.run(fed(1))


def test_values_that_are_shapes_are_ranges_as_well():
    built: list[Built] = []

    def build(ranges):
        built.append(Built(dict(ranges)))
        return built[-1]

    inputs = [ValueSpec("x", DType.FLOAT, (12,)), ValueSpec("s", DType.INT64, (2,))]
    session = TensorRtSession(
        build, inputs=inputs, outputs=[], open_inputs=[], shape_inputs=["s"], value_of=lambda name: ""
    )
    for shape in ((2, 6), (3, 4), (2, 5)):
        session.run({"x": np.ones(12, np.float32), "s": np.array(shape)})
    assert [item.ranges for item in built] == [
        {"s": ((2, 6), (2, 6), (2, 6))},
        {"s": ((2, 4), (2, 6), (3, 6))},
    ]


def test_only_wanted_values_of_the_model_are_captured(opened):
    session, built = opened
    assert [name for name, _ in session.captured(fed(1), ["a", "b"])] == ["a"]
    assert [name for name, _ in session.captured(fed(1), ["b"])] == []
    assert built[0].asked == [[], ["fp16::a"]]  # the names first, then what is needed and nothing else
    built[0].shown["a"] = np.zeros(2)
    session._shown = None
    ((_, array),) = session.captured(fed(1), ["a"])
    assert not array.any()  # the tensor of the value's own name, not its copy in another type
    assert session.observation == "unfused"


def test_a_plan_may_be_asked_for_before_anything_is_fed(opened):
    session, built = opened
    assert session.plan() == Plan(())
    assert built[0].ranges == {}


def test_a_file_that_is_no_model_fails_to_build(tmp_path):
    (tmp_path / "no.onnx").write_bytes(b"\x00 no model")
    with pytest.raises(BuildFailed, match="cannot be read"):
        create(EngineSpec("tensorrt")).compile(tmp_path / "no.onnx", {})
