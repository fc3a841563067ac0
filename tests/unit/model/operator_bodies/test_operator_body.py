"""What a body is written with: operands and attributes of its node, steps in the words of the opset, known sizes."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from tensortriage.model.operator_bodies.operator_body import (
    WRITERS,
    OperatorBody,
    OperatorBodyMissing,
    array_of,
    body_of,
    needed,
    refuse_if,
)
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

X = np.array([[1, -5, 2], [0, 3, 4]], np.float32)
FLOAT = ir.TensorType(ir.DataType.FLOAT)


def value(name, shape=(2, 3)):
    return ir.Value(name=name, type=FLOAT, shape=ir.Shape(shape))


def body_for(*inputs, opset=18, attributes=None, specs=(), outputs=("y", "")):
    node = ir.node("Made", list(inputs), attributes or {}, num_outputs=len(outputs))
    for made, name in zip(node.outputs, outputs, strict=True):
        made.name = name
    return OperatorBody(node, opset, {spec.name: spec for spec in specs})


def computed(body, result, **feed):
    """Return what the nodes that were written make of arrays."""
    inputs = [given for given in body.node.inputs if given is not None]
    made = [each for step in body.nodes for each in step.outputs]
    for index, each in enumerate((*made, *body.weights)):
        each.name = each.name or f"v{index}"
    graph = ir.Graph(inputs, [result], nodes=body.nodes, initializers=body.weights, opset_imports={"": body.opset})
    result.type = None
    proto = ir.to_proto(ir.Model(graph, ir_version=8))
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.UNDEFINED
    return ReferenceEvaluator(proto).run(None, feed)[0]


def test_operands_and_attributes_of_the_node():
    x, z = value("x"), value("z")
    body = body_for(x, None, z, attributes={"alpha": 0.5, "count": 0})
    assert [body.input(index) for index in range(4)] == [x, None, z, None]
    assert body.inputs(1) == [x]
    for count in (2, 4):
        with pytest.raises(OperatorBodyMissing):
            body.inputs(count)
    assert [body.wants(index) for index in range(3)] == [True, False, False]
    assert (body.attribute("alpha", 1), body.attribute("beta", 1)) == (0.5, 1)
    assert body.given("alpha", "count", "beta") == {"alpha": 0.5, "count": 0}


def test_an_attribute_of_a_function_that_is_not_known_yet_is_the_default():
    body = body_for(value("x"))
    body.node.attributes["alpha"] = ir.RefAttr("alpha", "outer", ir.AttributeType.FLOAT)
    assert body.attribute("alpha", 2.0) == 2.0


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda body, x: body.mean(x), X.mean(-1, keepdims=True)),
        (lambda body, x: body.largest(x), np.abs(X).max(-1, keepdims=True)),
        (lambda body, x: body.unsqueeze(x, 0, 3), X[None, :, :, None]),
        (lambda body, x: body.squeeze(body.unsqueeze(x, 1), 1), X),
        (lambda body, x: body.part(x, 1, 3, -1), X[:, 1:]),
        (lambda body, x: body.part(x, body.integers(0), body.size(x, 0), 1), X[:, :2]),
        (lambda body, x: body.size(x, -1), np.array([3])),
        (lambda body, x: body.plus(x, 1), X + X),
        (lambda body, x: body.plus(x, 2), None),
        (lambda body, x: body.op("Mul", x, body.constant(2)), 2 * X),
        (
            lambda body, x: body.op("Add", x, body.weight(lambda: np.float32([1, 2, 3]), (3,))),
            X + np.float32([1, 2, 3]),
        ),
    ],
)
def test_steps_are_written_in_the_words_of_the_opset(opset, write, expected):
    x = value("x")
    body = body_for(x, value("z"), opset=opset)
    result = write(body, x)
    if expected is None:  # nothing is added, and nothing written
        assert result is x
        assert body.nodes == []
    else:
        found = computed(body, result, x=X, z=X)
        np.testing.assert_allclose(found, expected)
        assert found.shape == expected.shape


def test_constants_are_float32_unless_told_and_weights_are_made_when_read():
    body, made = body_for(value("x")), []
    tensors = [body.constant(2), body.constant([1], np.int64), body.integers(3, 4)]
    assert [array_of(each).dtype for each in tensors] == [np.float32, np.int64, np.int64]
    assert array_of(tensors[2]).tolist() == [3, 4]
    weight = body.weight(lambda: made.append(1) or np.zeros(3, np.float32), (3,))
    assert (made, list(weight.shape)) == ([], [3])
    assert weight.const_value.numpy().shape == (3,)
    assert made == [1]


def test_a_step_may_have_several_results():
    x = value("x")
    parts = body_for(x).op_of("Split", [x], {"axis": 0, "num_outputs": 2}, outputs=2)
    assert len(parts) == 2


def test_arrays_are_known_of_initializers_and_constants_alone():
    body = body_for(value("x"))
    weight = ir.Value(name="w", const_value=ir.tensor(X), type=FLOAT, shape=ir.Shape(X.shape))
    ir.Graph([], [], nodes=[], initializers=[weight])
    assert array_of(weight).tolist() == X.tolist()
    assert array_of(body.op("Neg", value("x"))) is None
    assert array_of(value("x")) is None
    assert array_of(None) is None


def test_sizes_come_from_specs_and_arrays():
    x, unknown = value("x"), value("unknown")
    body = body_for(x, specs=[ValueSpec("x", DType.FLOAT, ("N", 3)), ValueSpec("free", None, None)])
    assert body.shape_of(x) == ("N", 3)
    assert body.shape_of(body.integers(1, 2)) == (2,)
    assert (body.rank(x, 7), body.rank(unknown, 7)) == (2, 7)
    assert (body.type_of("x"), body.type_of("free"), body.type_of("unknown")) == (DType.FLOAT.value, None, None)
    assert body.known_size(x, 1) == 3
    for ask in (
        lambda: body.known_size(x, 0),
        lambda: body.shape_of(unknown),
        lambda: body.shape_of(value("free")),
        lambda: needed(None),
        lambda: refuse_if(True),
    ):
        with pytest.raises(OperatorBodyMissing):
            ask()
    refuse_if(False)
    assert needed(x) is x


def test_a_writer_is_entered_by_its_operators():
    def writer(body):
        return ()

    assert body_of("Made", "MadeToo")(writer) is writer
    assert WRITERS.pop("Made") is WRITERS.pop("MadeToo") is writer
