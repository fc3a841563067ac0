"""Texts that are equal exactly when two nodes say the same, and hashes that are when an engine treats them alike."""

import numpy as np
import pytest

import models
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.similarity.structural_hash import Likeness, NodeKeys, operands, tensor_key

HEADER = "g (float[2, 4] x) => (float[2, 4] y) "


def signature(body, place=-1):
    model = models.parse(HEADER + body).ir
    return NodeKeys(model.functions).signature(list(model.graph)[place])


def test_names_do_not_count_and_attributes_and_operators_do():
    plain = signature("{ [n] y = Softmax <axis = 1> (x) }")
    assert signature("{ [other] a = Relu(x) [m] y = Softmax <axis = 1> (a) }") == plain
    assert signature("{ y = Softmax <axis = 0> (x) }") != plain
    assert signature("{ y = LogSoftmax <axis = 1> (x) }") != plain


def branches(then):
    return models.parse(
        "g (bool c, float[2] x, float[2] z) => (float[2] y) { [n] y = If (c) <then_branch = t () => (float[2] a) "
        "{ a = THEN }, else_branch = e () => (float[2] b) { b = Neg(x) }> }".replace("THEN", then)
    )


def test_bodies_count_by_what_they_do():
    def of(model):
        (node,) = model.ir.graph
        return NodeKeys(model.ir.functions).signature(node)

    relu = of(branches("Relu(x)"))
    assert of(branches("Sigmoid(x)")) != relu
    assert of(branches("Sub(x, z)")) == of(branches("Sub(x, z)"))
    assert [value.name for value in operands(next(iter(branches("Sub(z, x)").ir.graph)))] == ["c", "z", "x"]


def test_a_function_counts_by_its_body_and_may_not_hang():
    header = '<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[2] x) => (float[2] y) { [n] y = own.f(x) } '
    function = '<opset_import: ["": 17], domain: "own"> f (a) => (b) { b = OP(a) }'
    keys = []
    for op_type in ("Relu", "Relu", "Tanh"):
        model = models.of_message(models.onnx.parser.parse_model(header + function.replace("OP", op_type))).ir
        keys.append(NodeKeys(model.functions).function(next(iter(model.graph))))
    assert (keys[0] == keys[1], keys[0] == keys[2], bool(keys[0])) == (True, False, True)
    plain = models.parse(HEADER + "{ y = Relu(x) }").ir
    assert NodeKeys(plain.functions).function(next(iter(plain.graph))) == ""


def test_tensors_count_by_type_shape_and_content():
    model = models.parse(
        HEADER + "<float[2] a = {1, 2}, float[2] b = {1, 2}, float[2, 1] c = {1, 2}> { y = Relu(x) }"
    ).ir
    one, same, other = (tensor_key(model.graph.initializers[name].const_value) for name in "abc")
    assert (one == same, one == other) == (True, False)


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        ("<float[1] u = {2}, float[1] v = {2}> { a = Mul(x, u) y = Mul(a, v) }", True),
        ("<float[1] u = {2}, float[1] v = {3}> { a = Mul(x, u) y = Mul(a, v) }", False),  # small numbers count
        ("{ a = Relu(x) y = Sigmoid(a) }", False),
        ("{ a = Add(x, x) b = Relu(a) y = Add(a, b) }", False),  # one operand twice is another wiring
    ],
)
def test_nodes_that_an_engine_treats_alike(text, alike):
    model = models.parse(HEADER + text)
    likeness = Likeness(model, value_specs(model))
    nodes = [node for node in model.graph.nodes if node.op_type != "Relu" or "Sigmoid" in text]
    assert (likeness.of(nodes[0]) == likeness.of(nodes[1])) is alike


def test_the_numbers_of_a_large_weight_do_not_matter_to_a_build():
    rng = np.random.default_rng(0)
    rows = [", ".join(map(str, rng.integers(0, 9, 400))) for _ in range(2)]
    model = models.parse(
        "g (float[2, 20] x) => (float[2, 20] y) <float[20, 20] u = {FIRST}, float[20, 20] v = {SECOND}> "
        "{ a = MatMul(x, u) y = MatMul(a, v) }".replace("FIRST", rows[0]).replace("SECOND", rows[1])
    )
    likeness = Likeness(model, value_specs(model))
    assert len({likeness.of(node) for node in model.graph.nodes}) == 1
