"""ONNX Runtime as a worker drives it, here in this process."""

import json
import tempfile

import numpy as np
import pytest

from models import write
from tensortriage.engines.onnxruntime.settings import SessionSettings
from tensortriage.model.model import Model
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.encoding import label_of
from tensortriage_worker.exchange import Item
from tensortriage_worker.onnxruntime import adapter

ort = pytest.importorskip("onnxruntime")

GATHER = "g (float[n] x, int64[k] i) => (float[k] y) { [pick] a = Gather(x, i)  [twice] y = Add(a, a) }"


@pytest.fixture
def opened(tmp_path):
    """Return what builds a text; sessions are closed at the end."""
    sessions = []

    def opened(text, *, fallback="allow", plugin=None, **settings):
        path = write(tmp_path / "m.onnx", text)
        words = {**SessionSettings(**settings).words(), "fallback": fallback, "plugin": plugin}
        sessions.append(adapter.compile(path, {"settings": json.dumps(words)}))
        return sessions[-1]

    yield opened
    for session in sessions:
        session.close()


def items(**arrays):
    return {name: Item(name, np.asarray(array), label_of(np.asarray(array))) for name, array in arrays.items()}


def test_what_is_here():
    found = adapter.probe({})
    assert found["version"] == ort.__version__
    assert "CPUExecutionProvider" in found["providers"]
    assert set(found["providers"]) <= set(found["all_providers"])
    assert "plugin" not in found


def test_a_plugin_that_is_not_here():
    settings = json.dumps({"plugin": {"name": "no_such", "registered_as": "", "options": {}}})
    for ask in (adapter.probe, lambda options: adapter.compile("m.onnx", options)):
        with pytest.raises(AdapterError) as caught:
            ask({"settings": settings})
        assert (caught.value.kind, caught.value.slug) == (AdapterFailure.MISSING, "provider-missing")


def test_a_model_runs_and_tells_its_specs(opened):
    session = opened(GATHER)
    (item,) = session.run(items(x=np.float32([1, 2, 3]), i=np.int64([2, 0])))
    assert (item.name, item.label, item.array.tolist()) == ("y", "float32", [6, 2])
    assert session.inputs == [
        {"name": "x", "dtype": "float32", "shape": ["n"]},
        {"name": "i", "dtype": "int64", "shape": ["k"]},
    ]
    assert [row["name"] for row in session.outputs] == ["y"]
    assert (session.info["version"], session.info["providers"]) == (ort.__version__, ["CPUExecutionProvider"])
    assert session.plan() is None


def test_strings_and_numbers_side_by_side(opened):
    session = opened("g (string[2] s, float[2] x) => (string[2] t, float[2] y) { t = Identity(s)  y = Neg(x) }")
    found = {
        item.name: item.array.tolist()
        for item in session.run(items(s=np.array(["a", "ü"], object), x=np.ones(2, "f4")))
    }
    assert found == {"t": ["a", "ü"], "y": [-1, -1]}


def test_a_failing_kernel_is_a_failed_run(opened):
    with pytest.raises(AdapterError, match="out of data bounds") as caught:
        opened(GATHER).run(items(x=np.float32([1]), i=np.int64([7])))
    assert caught.value.kind is AdapterFailure.RUN


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("g (float[2] x) => (int64[2] y) { y = Relu(x) }", ""),
        ("g (float[2] x) => (float[2] y) { y = foo.Bar(x) }", ""),
        ("g (float[2] x) => (seq(float[2]) y) { y = SequenceConstruct(x) }", "value-not-a-tensor"),
    ],
)
def test_refused_models(opened, tmp_path, monkeypatch, text, slug):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(AdapterError) as caught:
        opened(text)
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.BUILD, slug)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]  # the folder for graphs is gone


def test_placement_is_told_where_the_release_can(opened):
    session = opened(GATHER, level="ORT_DISABLE_ALL")
    if not hasattr(session._session, "get_provider_graph_assignment_info"):
        pytest.skip("this release does not tell")
    parts = session.info["placement"]
    assert {part["provider"] for part in parts} == {"CPUExecutionProvider"}
    assert {(node["name"], node["op_type"]) for part in parts for node in part["nodes"]} == {
        ("pick", "Gather"),
        ("twice", "Add"),
    }


def test_the_optimized_graph_comes_with_its_weights(opened, tmp_path):
    weights = ", ".join(["1"] * 1024)
    session = opened(
        f"g (float[1024] x) => (float[1024] y) <float[1024] w = {{{weights}}}> {{ a = Identity(x)  y = Mul(a, w) }}"
    )
    info, files = session.answer("optimized", {}, {}, None)
    assert (info, [item.name for item in files]) == ({}, ["optimized.onnx", "optimized.onnx.data"])
    for item in files:
        (tmp_path / item.name).write_bytes(item.array.tobytes())
    optimized = Model.load(tmp_path / "optimized.onnx")
    assert [node.op_type for node in optimized.graph.nodes] == ["Mul"]


def test_optimizers_are_left_out_by_name(opened):
    chain = "g (float[2] x) => (float[2] y) { a = Identity(x)  b = Neg(a)  y = Abs(b) }"
    whole = opened(chain, disabled_optimizers=("EliminateIdentity",))
    _, files = whole.answer("optimized", {}, {}, None)
    assert b"Identity" in files[0].array.tobytes()
    _, files = opened(chain).answer("optimized", {}, {}, None)
    assert b"Identity" not in files[0].array.tobytes()


def test_graphs_that_a_provider_dumped_are_told_in_order(opened, tmp_path):
    session = opened(GATHER)
    for name, text in (("b_1.json", '{"n": 2}'), ("a_0.json", '{"n": 1}'), ("other.json", "{}")):
        (type(tmp_path)(session._dumps.name) / name).write_text(text)
    assert session.answer("graphs", {}, {}, None) == ({"graphs": [{"n": 1}, {"n": 2}]}, [])


class Options:
    """Takes the providers that are added."""

    def __init__(self):
        self.added = []

    def add_provider_for_devices(self, devices, own):
        self.added.append((devices, own))


@pytest.mark.parametrize(
    ("name", "own", "dumps"),
    [
        ("QNNExecutionProvider", {"a": "2"}, True),
        ("QNNExecutionProvider", {"a": "2", "dump_json_qnn_graph": "0"}, False),
        ("OtherExecutionProvider", {"a": "2"}, False),
    ],
)
def test_a_plugin_has_its_options_and_dumps_its_graphs_unless_told_otherwise(opened, name, own, dumps):
    session, options = opened(GATHER), Options()
    session._settings = {"plugin": {"options": own}}
    session._add_plugin(options, adapter.Plugin(name, "1", "lib.so", ["npu"], {"a": "1", "b": "1"}))
    ((devices, given),) = options.added
    dumped = {"dump_json_qnn_graph": "1", "json_qnn_graph_dir": session._dumps.name} if dumps else {}
    assert (devices, given) == (["npu"], {"b": "1", **own, **dumped})


def test_a_refused_fallback_is_told_to_the_build(opened):
    """ONNX Runtime knows of it: beside the CPU provider alone it is a contradiction."""
    with pytest.raises(AdapterError, match="disabled fallback to the CPU"):
        opened(GATHER, fallback="refuse")
