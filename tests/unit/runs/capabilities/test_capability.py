"""What an engine can build, asked of real engines; which nodes they refuse follows from the ONNX text."""

import models
from machine import CRASH, CRASHING, needs_openvino_crash
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.runs.capabilities.capability import Prober, Support
from tensortriage.runs.lab import Lab

MIXED = """
<ir_version: 10, opset_import: ["": 18, "custom": 1]>
g (float[2, 4] x) => (float[4, 2] y) <int64[2] sh = {4, 2}> {
    [a] a = Relu(x)
    [mystery] b = custom.Mystery (a)
    [c] c = Exp(b)
    [again] d = custom.Mystery (c)
    [e] e = Tanh(d)
    [f] y = Reshape(e, sh)
}
"""


def mixed():
    message = models.proto(MIXED)
    for name in ("b", "d"):
        message.graph.value_info.add().CopyFrom(message.graph.input[0])
        message.graph.value_info[-1].name = name
    return models.of_message(message)


def probe(model, target="onnxruntime", *, partition=True):
    with Lab() as lab:
        return Prober(model, EngineSpec.parse(target), lab).capability(partition=partition)


def test_a_model_that_builds_is_built_once():
    found = probe(models.chain(40))
    assert (found.outcome, found.answers, found.builds) == ("ok", (), 1)
    assert [(piece.first, piece.last, piece.support) for piece in found.pieces] == [(0, 39, Support.SUPPORTED)]


def test_operators_that_the_engine_lacks():
    found = probe(mixed())
    assert found.outcome == "build-failed"
    assert [answer.nodes for answer in found.unsupported] == [("mystery",), ("again",)]
    assert all("Mystery" in answer.message for answer in found.unsupported)
    assert [piece.file_name for piece in found.pieces] == [
        "supported_subgraph-nodes-0-0.onnx",
        "unsupported_subgraph-nodes-1-1.onnx",
        "supported_subgraph-nodes-2-2.onnx",
        "unsupported_subgraph-nodes-3-3.onnx",
        "supported_subgraph-nodes-4-5.onnx",
    ]


def test_pieces_only_when_asked_for():
    assert probe(mixed(), partition=False).pieces == ()


def test_a_value_of_unknown_type_is_told_not_guessed():
    message = models.proto(MIXED)  # nothing says what Mystery makes
    found = probe(models.of_message(message))
    assert {answer.nodes[0]: answer.support for answer in found.unsupported} == {
        "mystery": Support.UNSUPPORTED,
        "c": Support.UNKNOWN,
        "again": Support.UNKNOWN,
        "e": Support.UNKNOWN,
        "f": Support.UNKNOWN,
    }


def test_many_nodes_are_asked_about_at_a_time():
    message = models.chain(64)
    clone = message.clone()
    clone.ir.graph[40].domain, clone.ir.graph[40].op_type = "custom", "Mystery"
    clone.ir.opset_imports["custom"] = 1
    for node in clone.ir.graph:
        node.outputs[0].type = clone.ir.graph.inputs[0].type
    found = probe(Model.from_ir(clone.ir), partition=False)
    assert [answer.nodes for answer in found.unsupported] == [("op_40",)]
    assert found.builds < 10  # most of the nodes are alike, and those that are not are halved


def test_a_node_that_needs_its_shapes_gets_them(tmp_path):
    """An engine that wants shapes as constants refuses a Reshape whose shape is an input, but not the model."""
    script = tmp_path / "picky.py"
    script.write_text(
        "import onnx, onnxruntime\n"
        "class Picky:\n"
        "    def compile(self, path, options):\n"
        "        graph = onnx.load(path).graph\n"
        "        shapes = {node.input[1] for node in graph.node if node.op_type == 'Reshape'}\n"
        "        if shapes & {value.name for value in graph.input} or any(n.op_type == 'Erf' for n in graph.node):\n"
        "            raise RuntimeError('shapes must be known')\n"
        "        return Session()\n"
        "class Session:\n    def run(self, feed):\n        return feed\n"
    )
    model = models.parse("""
        g (float[2, 3] x) => (float[6] y) <int64[1] two = {1}> {
            [shape] s = Shape(x)  [size] t = ReduceProd(s)  [reshape] r = Reshape(x, t)  [erf] y = Erf(r) }""")
    found = probe(model, f"script:{script}:Picky", partition=False)
    assert [answer.nodes for answer in found.unsupported] == [("erf",)]


def test_openvino_crashes_on_a_combination_only():
    needs_openvino_crash()
    found = probe(Model.load(CRASH), CRASHING)
    assert (found.outcome, found.unsupported) == ("engine-crash", ())
    assert len(found.pieces) > 1
    assert sum(len(piece.nodes) for piece in found.pieces) == found.nodes == 30
