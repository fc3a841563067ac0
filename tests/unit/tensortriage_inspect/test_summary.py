"""What is in a model. Expected numbers are counted by hand from the ONNX text of each model."""

import onnx
import pytest

import models
from tensortriage_inspect.node_listing import list_layers
from tensortriage_inspect.summary import summarize

NET = """
<ir_version: 10, opset_import: ["": 18, "local": 1], producer_name: "maker">
net (float[batch, 3] x, float[batch, ?] z) => (float[batch, 2] y)
<float[3, 2] w = {1, 2, 3, 4, 5, 6}, int8[2] q = {1, 2}, float s = {0.5}>
{
    k = Constant <value = float[4] {1, 2, 3, 4}> ()
    d = DequantizeLinear(q, s)
    m = MatMul(x, w)
    a = Add(m, d)
    u = local.twice(a)
    y = Relu(u)
}
<domain: "local", opset_import: ["": 18]>
twice (i) => (o) { t = Neg(i) o = Neg(t) }
"""
IF = """
    g (bool c, float[2] x) => (float[2] y) {
        [choice] y = If (c) <
            then_branch = t () => (float[2] a) <float[2] w = {1, 2}> { a = Add(x, w) },
            else_branch = e () => (float[2] b) { b = Identity(x) }>
    }"""


@pytest.fixture
def summary(tmp_path):
    return summarize(models.write(tmp_path / "m.onnx", models.proto(NET)))


def test_counts(summary):
    assert (summary.nodes, summary.all_nodes, summary.initializers) == (6, 8, 3)
    assert (summary.parameters, summary.parameter_bytes) == (6 + 2 + 1 + 4, 24 + 2 + 4 + 16)
    assert summary.opsets == {"ai.onnx": 18, "local": 1}
    assert (summary.name, summary.producer, summary.ir_version) == ("net", "maker", 10)


def test_parameters_belong_to_the_first_operator_that_computes_with_them(summary):
    rows = {row.op_type: (row.nodes, row.parameters, row.parameter_bytes) for row in summary.ops}
    assert rows["MatMul"] == (1, 6, 24)
    assert rows["Add"] == (1, 2, 2)  # the int8 weight, through its DequantizeLinear
    assert rows["DequantizeLinear"] == (1, 1, 4)  # its scale
    assert rows["(unused)"] == (0, 4, 16)
    assert rows["Neg"][0] == 2


def test_element_types(summary):
    assert [(row.dtype, row.tensors, row.nbytes) for row in summary.dtypes] == [("float32", 3, 44), ("int8", 1, 2)]


def test_dynamic_dimensions(summary):
    assert summary.symbols == {"batch": ("x[0]", "z[0]")}
    assert summary.unknown_dims == ("z[1]",)


def test_functions(summary):
    assert [(f.name, f.nodes, f.calls) for f in summary.functions] == [("local::twice", 2, 1)]


def test_bodies(tmp_path):
    summary = summarize(models.write(tmp_path / "m.onnx", IF))
    assert [(b.node, b.attribute, b.depth, b.nodes) for b in summary.bodies] == [
        ("choice", "then_branch", 1, 1),
        ("choice", "else_branch", 1, 1),
    ]
    assert (summary.nodes, summary.all_nodes, summary.parameters) == (1, 3, 2)


def test_an_input_with_a_default_need_not_be_fed(tmp_path):
    text = "g (float[1] x, float[1] s) => (float[1] y) <float[1] s = {2}> { y = Mul(x, s) }"
    assert [value.name for value in summarize(models.write(tmp_path / "m.onnx", text)).inputs] == ["x"]


def test_missing_weights_are_told_and_not_needed(tmp_path):
    message = models.proto("g (float[2] x) => (float[2] y) { a = Add(x, w) y = Mul(a, v) }")
    for name, file in (("w", "here.bin"), ("v", "gone.bin")):
        message.graph.initializer.append(models.external_tensor(name, onnx.TensorProto.FLOAT, (2,), file))
    (tmp_path / "here.bin").write_bytes(b"\0" * 8)
    found = summarize(models.write(tmp_path / "m.onnx", message))
    assert [(f.location, f.tensors, f.file_bytes) for f in found.external] == [
        ("here.bin", 1, 8),
        ("gone.bin", 1, None),
    ]
    (elsewhere := tmp_path / "dir").mkdir()
    moved = summarize(tmp_path / "m.onnx", external_data_dir=elsewhere)
    assert [f.file_bytes for f in moved.external] == [None, None]


def test_layers_know_types_and_shapes():
    layers = list_layers(models.proto(NET))
    assert [layer.op_type for layer in layers] == [
        "Constant", "DequantizeLinear", "MatMul", "Add", "local::twice", "Relu", "Neg", "Neg",
    ]  # fmt: skip
    matmul = layers[2]
    assert [(v.name, v.type, v.shape) for v in matmul.inputs] == [
        ("x", "float32", ("batch", 3)),
        ("w", "float32", (3, 2)),
    ]
    assert [(v.name, v.type, v.shape) for v in matmul.outputs] == [("m", "", None)]
    assert layers[-1].where == "function local::twice"


def test_layers_of_bodies_come_behind_their_node():
    layers = list_layers(models.proto(IF))
    assert [(layer.where, layer.op_type) for layer in layers] == [
        ("", "If"),
        ("choice/then_branch", "Add"),
        ("choice/else_branch", "Identity"),
    ]
    assert [value.type for value in layers[1].inputs] == ["float32", "float32"]
