"""Values of the recorded model (torch 2.13) and the places in the network that they stand for."""

import dataclasses
from pathlib import Path

import pytest
from onnx import helper

from models import of_message, of_nodes
from tensortriage.model.model import Model
from tensortriage.model.provenance.network_outputs import note_outputs, note_part, noted_outputs
from tensortriage.model.transforms.mark_outputs import mark_outputs, select_outputs
from tensortriage_torch.operations import Operation, operations
from tensortriage_torch.traced_values import TracedValue, folded_modules, several, trace, traced_values

FOLDER = Path(__file__).resolve().parents[2] / "data" / "torch"
NETWORK = f"torch:{FOLDER / 'small_transformer.py'}:network"


def test_the_last_value_of_a_linear_is_what_the_module_returns():
    model = Model.load(FOLDER / "small_transformer.onnx")
    traced = traced_values(model)
    for name, place in traced.items():
        origin = model.graph.origin(model.graph.producer(name).name)
        assert place.fx_node in ("", origin.fx_node)
        assert f"{origin.module}.".startswith(place.module)
    by_module = {place.module: name for name, place in traced.items() if place.module}
    end = model.graph.producer(by_module["layers.1.attention.o_proj"])
    assert (end.op_type, traced[end.outputs[0]].fx_node) == ("Add", model.graph.origin(end.name).fx_node)
    (product,) = [made for made in map(model.graph.producer, end.inputs) if made]
    assert product.op_type == "MatMul"
    assert product.outputs[0] not in traced  # a product without its bias is no value of the network


def test_marking_every_value_leaves_what_is_known_as_it_was():
    model = Model.load(FOLDER / "small_transformer.onnx")
    values = [value for node in model.graph.nodes for value in node.outputs]
    assert traced_values(mark_outputs(model, values)) == traced_values(model)


def test_modules_are_found_by_name_alone():
    traced = traced_values(Model.load(FOLDER / "small_transformer_legacy.onnx"))
    modules = {place.module for place in traced.values()}
    assert modules >= {"layers.0.attention.q", "layers.1.attention.o_proj", "head", "layers.0.mlp.2"}
    assert not any(place.fx_node for place in traced.values())


def test_notes_of_the_network_outputs():
    metadata: dict[str, str] = {}
    assert noted_outputs(metadata, ["y"]) == ("y",)
    note_outputs(metadata, ["y"])
    note_outputs(metadata, ["inner"])
    assert noted_outputs(metadata, ["inner"]) == ("y",)
    note_part(metadata)
    assert noted_outputs(metadata, ["y"]) == ()
    assert noted_outputs({"tensortriage.network_outputs": "garbage"}, ["y"]) == ()


def test_marking_remembers_the_outputs_of_the_network():
    model = Model.load(FOLDER / "small_transformer.onnx")
    inner = model.graph.nodes[5].outputs[0]
    for changed in (mark_outputs(model, [inner]), select_outputs(model, [inner])):
        own = [spec.name for spec in changed.outputs]
        assert noted_outputs(changed.ir.graph.metadata_props, own) == ("scores",)


def test_a_network_that_is_the_file_s_own_traces_every_value():
    model = Model.load(FOLDER / "small_transformer.onnx")
    traced = trace(model, operations(model))
    assert traced.values == traced_values(model)
    assert {name: each.name for name, each in traced.operations.items()} == {
        each.name: each.name for each in operations(model)
    }


def test_without_the_network_s_operations_only_modules_are_traced():
    model = Model.load(FOLDER / "small_transformer.onnx")
    values = trace(model, ()).values
    assert values
    assert all((place.module or place.given) and not place.fx_node for place in values.values())


def test_what_the_file_leaves_out_of_the_network():
    model = Model.load(FOLDER / "small_transformer.onnx")
    own = operations(model)
    user = next(each for each in own if each.origin.operator.startswith("aten.gelu"))
    lost = Operation(dataclasses.replace(user.origin, operator="aten.mul.Tensor", fx_node="lost"), user.arguments)
    viewed = Operation(dataclasses.replace(user.origin, operator="aten.view.default", fx_node="viewed"), ("lost",))
    place = own.index(user)
    fed = dataclasses.replace(user, arguments=("viewed",))
    traced = trace(model, (*own[:place], lost, viewed, fed, *own[place + 1 :]))
    assert [each.name for each in traced.made_of(user.name)] == [user.name, "viewed", "lost"]
    assert [each.name for each in traced.left_out(user.name)] == ["lost"]  # a view may have been joined with it
    assert traced.left_out(own[-1].name) == ()


@pytest.mark.parametrize(
    ("calls", "folded"),
    [
        ([("conv", ""), ("norm", "conv"), ("act", "norm")], {"conv": ("norm",)}),
        ([("conv", ""), ("norm", "conv"), ("drop", "norm"), ("act", "drop")], {"conv": ("norm", "drop")}),
        ([("conv", ""), ("norm", ""), ("act", "norm")], {}),  # something else lies between the two
        ([("conv", ""), ("norm", "conv"), ("other", "conv"), ("act", "norm")], {}),  # what it returns is used as it is
        ([("conv", ""), ("norm", "conv"), ("norm", ""), ("act", "norm")], {}),  # a norm that is called twice
    ],
)
def test_what_follows_a_module_and_is_not_in_the_file_was_folded_into_it(calls, folded):
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], name="/conv/Conv"), helper.make_node("Relu", ["a"], ["y"])]
    nodes[1].name = "/act/Relu"
    made = of_nodes(nodes, inputs={"x": (1, 2, 4, 4), "w": (2, 2, 1, 1)}, outputs={"y": (1, 2, 4, 4)})
    assert folded_modules(made.graph, calls) == folded


def test_what_a_module_is_given_tells_what_no_module_returns():
    nodes = [
        helper.make_node("Neg", ["x"], ["a"], name="/Neg"),
        helper.make_node("Identity", ["w"], ["v"], name="Identity_3"),
        helper.make_node("MatMul", ["a", "v"], ["y"], name="/head/MatMul"),
    ]
    message = helper.make_model(
        helper.make_graph(
            nodes, "g",
            [helper.make_tensor_value_info("x", 1, (2, 2))], [helper.make_tensor_value_info("y", 1, (2, 2))],
            [helper.make_tensor("w", 1, (2, 2), [1.0, 2.0, 3.0, 4.0])],
        ),
        opset_imports=[helper.make_opsetid("", 18)], ir_version=10,
    )  # fmt: skip
    places = traced_values(of_message(message))
    assert places == {"a": TracedValue(given="head"), "y": TracedValue(module="head")}


def test_modules_that_several_values_leave_are_told_with_them():
    nodes = [helper.make_node(kind, ["x"], [name], name=f"/pair/{kind}") for kind, name in (("Neg", "a"), ("Abs", "b"))]
    nodes.append(helper.make_node("Add", ["a", "b"], ["y"], name="/Add"))
    assert several(of_nodes(nodes, inputs={"x": (2,)}, outputs={"y": (2,)})) == {"pair": ("a", "b")}
