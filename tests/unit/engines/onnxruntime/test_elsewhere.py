"""ONNX Runtime in a worker: the same numbers and plan as here, and which builds of providers are refused."""

import sys

import numpy as np
import pytest

from converted_engines import IMAGES, MODEL
from models import parse, write
from tensortriage.engines.base import Limits
from tensortriage.engines.onnxruntime import elsewhere
from tensortriage.engines.onnxruntime.elsewhere import Elsewhere, ElsewhereSession, Requested
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.options import read_options
from tensortriage.errors import BuildFailed
from tensortriage.values.dtype import Precision

HERE = {"worker": sys.executable}
FIXED = "g (float[2] x) => (float[2] y) { [first] a = Exp(x)  [second] y = Relu(a) }"
OPEN = FIXED.replace("[2]", "[n]")
WHOLE = "g (int64[2] x) => (int64[2] y) { y = Add(x, x) }"
NPU = "NpuExecutionProvider"
CPU = "CPUExecutionProvider"


@pytest.mark.parametrize("options", [{}, {"optimization": "none"}, {"precision": "fp16"}], ids=str)
def test_results_and_plan_are_those_of_this_process(options):
    here, there = OnnxRuntimeEngine().compile(MODEL, options), OnnxRuntimeEngine().compile(MODEL, {**options, **HERE})
    try:
        expected, found = here.run({"image": IMAGES[:4]}), there.run({"image": IMAGES[:4]})
        np.testing.assert_array_equal(found["logits"], expected["logits"])
        plans = [{(r.name, r.nodes, r.precision) for r in session.plan().regions} for session in (there, here)]
        assert plans[0] == plans[1]
    finally:
        here.close()
        there.close()


class Built:
    """What a worker would hold of a model."""

    def __init__(self, model, placement=None, graphs=(), files=None):
        self.inputs, self.outputs, self.info = model.inputs, model.outputs, {"placement": placement}
        self.graphs, self.files, self.closed = graphs, files or {}, False

    def answer(self, question):
        return ({"graphs": list(self.graphs)}, {}) if question == "graphs" else ({}, self.files)

    def close(self):
        self.closed = True


@pytest.fixture
def opened():
    """Return what opens a session on something built; the sessions are closed at the end."""
    sessions = []

    def opened(built, *, text=FIXED, **given):
        model = parse(text)
        requested = Requested(given.pop("provider", ""), given.pop("precision", Precision.FP32))
        words = {"compiled": False, "fixed_shapes": False, **given}
        sessions.append(ElsewhereSession(model, model, lambda path: built, requested, **words))
        return sessions[-1]

    yield opened
    for session in sessions:
        session.close()


def placed(**providers):
    """Return which provider got nodes of which operators."""
    names = {"npu": NPU, "cpu": CPU}
    return [
        {"provider": names[key], "nodes": [{"name": op, "op_type": op, "domain": ""} for op in ops]}
        for key, ops in providers.items()
    ]


@pytest.mark.parametrize(
    ("text", "placement", "provider"),
    [
        (FIXED, placed(npu=["Exp"]), NPU),
        (FIXED, placed(npu=["Exp"], cpu=["Relu", "Sin"]), NPU),
        (FIXED, placed(cpu=["Relu", "Reshape"]), NPU),  # nothing that rounds
        (FIXED, [], NPU),
        (FIXED, None, NPU),  # a release that does not tell
        (FIXED, placed(cpu=["Exp"]), ""),
        (WHOLE, placed(cpu=["Add"]), NPU),
    ],
)
def test_a_build_is_taken_where_what_rounds_runs_as_it_was_asked(opened, text, placement, provider):
    session = opened(Built(parse(text), placement), text=text, provider=provider)
    assert [spec.name for spec in (*session.inputs, *session.outputs)] == ["x", "y"]


@pytest.mark.parametrize(
    "placement", [placed(cpu=["Exp"]), placed(npu=["Relu"], cpu=["Exp"]), placed(npu=[], cpu=["Sin"])]
)
def test_a_build_of_which_the_provider_computes_nothing_is_refused(opened, placement):
    built = Built(parse(FIXED), placement)
    with pytest.raises(BuildFailed) as caught:
        opened(built, provider=NPU)
    assert caught.value.slug == "provider-unused"
    assert built.closed


@pytest.mark.parametrize(
    "held",
    [
        FIXED.replace(" x)", " z)").replace("(x)", "(z)"),
        FIXED.replace("float[2] y", "float[3] y"),
        WHOLE.replace("[2]", "[3]"),
    ],
)
def test_a_file_of_another_model_is_refused(opened, held):
    built = Built(parse(held))
    with pytest.raises(BuildFailed, match="the file has"):
        opened(built, compiled=True)
    assert built.closed
    opened(Built(parse(held)))  # where it was built from the model, there is nothing to compare


def test_a_file_that_tells_no_shapes_is_taken_and_tells_no_plan(opened):
    assert opened(Built(parse(FIXED.replace("float[2]", "float[]"))), compiled=True).plan() is None


def test_a_plan_is_that_of_the_optimized_graph(opened, tmp_path):
    saved = write(tmp_path / "optimized.onnx", FIXED).read_bytes()
    files = {"optimized.onnx": np.frombuffer(saved, np.uint8)}
    assert [region.nodes for region in opened(Built(parse(FIXED), files=files)).plan().regions] == [
        ("first",),
        ("second",),
    ]
    assert opened(Built(parse(FIXED), files={"optimized.onnx": np.zeros(3, np.uint8)})).plan() is None


@pytest.mark.parametrize(
    ("precision", "label"), [(Precision.FP16, "float16"), (Precision.INT8, "float16"), (Precision.FP32, "")]
)
def test_a_plan_tells_what_the_provider_got(opened, precision, label):
    parts = placed(npu=["first"], cpu=["second"])
    parts[0]["nodes"][0]["op_type"] = "Exp"
    plan = opened(Built(parse(FIXED), parts), provider=NPU, precision=precision).plan()
    assert plan.device == NPU
    assert [(region.nodes, region.device) for region in plan.regions] == [(("first",), NPU), (("second",), CPU)]
    assert plan.regions[0].precision == label
    assert opened(Built(parse(FIXED)), provider=NPU).plan() is None


def test_open_dimensions_are_closed_by_feeds_where_a_provider_wants_it(opened):
    built = []
    model = parse(OPEN)

    def build(path):
        built.append(path)
        return Built(model)

    requested = Requested("", Precision.FP32)
    for fixed, count in ((True, 0), (False, 1)):
        ElsewhereSession(model, model, build, requested, compiled=False, fixed_shapes=fixed).close()
        assert len(built) == count


@pytest.fixture
def probed(monkeypatch):
    """Take it as told what the Python of this process offers, with a plugin or without."""
    found = {"providers": [CPU], "all_providers": [CPU], "plugin": {"name": NPU}}
    monkeypatch.setattr(elsewhere, "_PROBED", dict.fromkeys(("any",), found))
    monkeypatch.setattr(elsewhere.json, "dumps", lambda *_, **__: "any")


@pytest.mark.parametrize(
    ("text", "options", "slug"),
    [
        ("no model", {}, "build-failed"),
        (FIXED, {"ep": "qnn", "precision": "int8"}, "quantizers-missing"),
    ],
)
def test_what_cannot_be_built_is_refused_before_it_travels(probed, tmp_path, text, options, slug):
    path = tmp_path / "m.onnx"
    path.write_text(text) if text == "no model" else write(path, text)
    given = read_options({**options, **HERE}, OnnxRuntimeEngine.options)
    with pytest.raises(BuildFailed) as caught:
        Elsewhere(Limits()).compile(path, given, None)
    assert caught.value.slug == slug
