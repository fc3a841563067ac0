"""Repeated blocks. Expected counts follow from how each graph is put together."""

import onnx
import pytest
from onnx import helper

from tensortriage.model.inspect.outline import ConstantFacts
from tensortriage.model.inspect.repeated_blocks import repeated_blocks
from tensortriage.values.dtype import DType


def layer(number, source, result, *, attribute=0.1, operator="Relu"):
    """Three nodes with a residual; the weight is a constant."""
    name = f"/net/layer.{number}"
    a, b = f"a{number}", f"b{number}"
    return [
        helper.make_node("MatMul", [source, f"w{number}"], [a], name=f"{name}/MatMul"),
        helper.make_node("LeakyRelu", [a], [b], name=f"{name}/Act", alpha=attribute)
        if operator == "LeakyRelu"
        else helper.make_node(operator, [a], [b], name=f"{name}/Act"),
        helper.make_node("Add", [source, b], [result], name=f"{name}/Add"),
    ]


def network(count, **changed):
    """A stem, layers with these numbers of another kind, and a head."""
    nodes = [helper.make_node("Cast", ["x"], ["v0"], name="/net/stem/Cast", to=1)]
    for number in range(count):
        nodes += layer(number, f"v{number}", f"v{number + 1}", **changed.get(f"l{number}", {}))
    nodes.append(helper.make_node("Softmax", [f"v{count}"], ["y"], name="/net/head/Softmax"))
    weights = {f"w{n}": ConstantFacts(f"w{n}", DType.FLOAT, (4, 4)) for n in range(count)}
    return nodes, weights


def test_layers_of_a_network():
    (block,) = repeated_blocks(*network(12))
    assert (block.copies, block.nodes_per_copy) == (12, 3)
    assert block.op_counts == {"MatMul": 1, "Relu": 1, "Add": 1}
    assert block.scopes[0] == "net.layer.0"
    assert block.scopes[-1] == "net.layer.11"
    assert block.same_parameter_shapes


def test_one_layer_of_another_kind_divides_the_run():
    blocks = repeated_blocks(*network(9, l4={"operator": "Tanh"}))
    assert [(block.copies, block.first_nodes[0]) for block in blocks] == [
        (4, "/net/layer.0/MatMul"),
        (4, "/net/layer.5/MatMul"),
    ]


def test_attributes_tell_layers_apart():
    changed = {f"l{n}": {"operator": "LeakyRelu", "attribute": 0.1 + 0.1 * (n >= 3)} for n in range(6)}
    assert [block.copies for block in repeated_blocks(*network(6, **changed))] == [3, 3]


def test_parameter_shapes_do_not_but_are_told():
    nodes, weights = network(4)
    weights["w2"] = ConstantFacts("w2", DType.FLOAT, (4, 8))
    (block,) = repeated_blocks(nodes, weights)
    assert block.copies == 4
    assert not block.same_parameter_shapes


def test_ranks_and_types_of_parameters_do():
    nodes, weights = network(4)
    weights["w3"] = ConstantFacts("w3", DType.FLOAT16, (4, 4))
    (block,) = repeated_blocks(nodes, weights)
    assert block.copies == 3


def test_wiring_inside_tells_layers_apart():
    nodes, weights = network(6)
    nodes[1 + 3 * 3 + 2].input[0] = "a3"  # the fourth residual starts inside the layer
    assert [block.copies for block in repeated_blocks(nodes, weights)] == [3, 2]


def test_names_do_not_matter():
    nodes, weights = network(4)
    plain = repeated_blocks(nodes, weights)[0].hash
    for node in nodes:
        node.name = ""
    assert repeated_blocks(nodes, weights)[0].hash == plain


def test_nodes_that_compute_constants_are_left_out():
    nodes, weights = network(3)
    for number in range(5):
        nodes.insert(0, helper.make_node("Neg", ["w0"], [f"c{number}"], name=f"c{number}"))
    assert [block.copies for block in repeated_blocks(nodes, weights)] == [3]


def test_bodies_tell_nodes_apart():
    def branch(op_type):
        body = helper.make_node(op_type, ["v0"], ["o"])
        graph = helper.make_graph([body], "b", [], [helper.make_tensor_value_info("o", 1, [4])])
        return helper.make_node("If", ["c"], [f"i{op_type}"], then_branch=graph, else_branch=graph)

    same = [branch("Neg"), *layer(0, "v0", "v1"), branch("Neg"), *layer(1, "v1", "v2")]
    other = [branch("Neg"), *layer(0, "v0", "v1"), branch("Abs"), *layer(1, "v1", "v2")]
    assert [block.nodes_per_copy for block in repeated_blocks(same, {})] == [4]
    assert [block.nodes_per_copy for block in repeated_blocks(other, {})] == []


@pytest.mark.parametrize("nodes", [[], [onnx.NodeProto(op_type="Relu", input=["x"], output=["y"])]])
def test_too_little_to_repeat(nodes):
    assert repeated_blocks(nodes, {}) == ()
