"""What a parsed message says, as plain data. Expected texts follow from the ONNX text of each model."""

import onnx
import pytest
from onnx import TensorProto, helper

import models
from tensortriage.model.inspect.outline import attribute_text, declared_value, op_label, type_label
from tensortriage.model.ir.messages import all_nodes, bodies

IF = """
    g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Neg(x) },
                    else_branch = e () => (float[2] b) { u = Abs(x)  b = Exp(u) }>
    }"""


def test_a_declared_value():
    facts = declared_value(models.proto("g (bfloat16[n, 3] x) => (float y) { y = Cast <to = 1> (x) }").graph.input[0])
    assert (facts.name, facts.type, facts.shape) == ("x", "bfloat16", ("n", 3))


def test_an_undeclared_shape_differs_from_a_scalar():
    graph = models.proto("g (float[] x, float z) => (float[?] y) { y = Add(x, z) }").graph
    assert [declared_value(info).shape for info in (*graph.input, *graph.output)] == [None, (), (None,)]


@pytest.mark.parametrize(
    ("declared", "label"),
    [
        (helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.INT64, [2])), "sequence(int64)"),
        (helper.make_sequence_type_proto(helper.make_tensor_type_proto(77, [2])), "sequence(?)"),
        (helper.make_map_type_proto(99, helper.make_tensor_type_proto(TensorProto.FLOAT, [])), "map(?, float32)"),
        (helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [])), "optional(float32)"),
        (helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(1, [])), "map(string, float32)"),
        (onnx.TypeProto(), ""),
    ],
)
def test_types_that_are_no_tensors(declared, label):
    assert type_label(declared) == label


def test_bodies_and_the_nodes_in_them():
    (node,) = models.proto(IF).graph.node
    assert [(name, len(graph.node)) for name, graph in bodies(node)] == [("then_branch", 1), ("else_branch", 2)]
    assert sorted(inner.op_type for inner in all_nodes([node])) == ["Abs", "Exp", "If", "Neg"]


def test_a_foreign_operator_is_named_with_its_domain():
    assert op_label(onnx.NodeProto(op_type="Gelu", domain="com.microsoft")) == "com.microsoft::Gelu"
    assert op_label(onnx.NodeProto(op_type="Gelu", domain="ai.onnx")) == "Gelu"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-5, "1e-05"),
        (-3, "-3"),
        ([1, 2], "[1, 2]"),
        ([0.1], "[0.1]"),
        ("same\n", "'same\\n'"),
        (["a", "b"], "[a, b]"),
        (helper.make_tensor("t", 1, [2], [0, 0]), "float32[2]"),
    ],
)
def test_attributes_as_text(value, text):
    assert attribute_text(helper.make_attribute("a", value)) == text
