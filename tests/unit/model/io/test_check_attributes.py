"""Attributes of the wrong kind are refused when the model is loaded, by an error that names node and attribute."""

import onnx
import pytest
from onnx import TensorProto, helper

import models
from tensortriage.errors import ModelError
from tensortriage.model.model import Model

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def info(name):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 4))


def model(*nodes, functions=()):
    graph = helper.make_graph(list(nodes), "g", [info("x")], [info("y")])
    return helper.make_model(graph, opset_imports=OPSETS, functions=functions, ir_version=8)


def load(proto, folder):
    return Model.load(models.write(folder / "m.onnx", proto))


def refusal(proto, folder):
    with pytest.raises(ModelError) as caught:
        load(proto, folder)
    return caught.value


def constant(*attributes):
    node = helper.make_node("Constant", [], ["k"])
    node.attribute.extend(attributes)
    return model(node, helper.make_node("Add", ["x", "k"], ["y"]))


def attribute(name, value):
    return helper.make_attribute(name, value)


def reference(name="value", kind=onnx.AttributeProto.TENSOR):
    return onnx.AttributeProto(name=name, type=kind, ref_attr_name="own")


WRONG = {
    "none": [],
    "two": [attribute("value_int", 1), attribute("value_float", 1.0)],
    "text": [attribute("value", "text")],
    "a type": [attribute("value", helper.make_tensor_type_proto(1, [1]))],
    "a graph": [attribute("value", model(helper.make_node("Relu", ["x"], ["y"])).graph)],
}


@pytest.mark.parametrize("attributes", WRONG.values(), ids=WRONG)
def test_constants_of_another_kind(attributes, tmp_path):
    assert refusal(constant(*attributes), tmp_path).slug == "constant-invalid"


def test_constants_of_a_function_may_be_its_attributes(tmp_path):
    node = helper.make_node("Constant", [], ["k"])
    node.attribute.append(reference())
    proto = helper.make_function(
        "own", "F", ["a"], ["b"], [node, helper.make_node("Add", ["a", "k"], ["b"])], OPSETS, ["own"]
    )
    call = helper.make_node("F", ["x"], ["y"], domain="own", own=helper.make_tensor("t", 1, [1], [2.0]))
    assert load(model(call, functions=[proto]), tmp_path).inputs


@pytest.mark.parametrize(("name", "kind"), [("alpha", onnx.AttributeProto.FLOAT), ("body", onnx.AttributeProto.GRAPH)])
def test_a_reference_outside_of_functions(name, kind, tmp_path):
    node = helper.make_node("LeakyRelu", ["x"], ["y"], name="leaky")
    node.attribute.append(reference(name, kind))
    error = refusal(model(node), tmp_path)
    assert error.slug == "attribute-invalid"
    assert "'leaky'" in error.message


def test_a_function_whose_caller_gives_it_a_graph(tmp_path):
    node = helper.make_node("If", ["a"], ["b"])
    node.attribute.append(reference("then_branch", onnx.AttributeProto.GRAPH))
    proto = helper.make_function("own", "F", ["a"], ["b"], [node], OPSETS, ["own"])
    assert refusal(model(helper.make_node("F", ["x"], ["y"], domain="own"), functions=[proto]), tmp_path).slug == (
        "function-not-inlined"
    )


@pytest.mark.parametrize(("number", "slug"), [(2**31, "dtype-unsupported"), (1.0, "attribute-invalid")])
@pytest.mark.parametrize(("op", "name"), [("Cast", "to"), ("LayerNormalization", "stash_type")])
def test_element_types_that_are_none(op, name, number, slug, tmp_path):
    node = helper.make_node(op, ["x", "x"] if op != "Cast" else ["x"], ["y"], **{name: number})
    assert refusal(model(node), tmp_path).slug == slug
