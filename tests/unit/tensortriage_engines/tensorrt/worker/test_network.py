"""What is said about the layers of a network: owners, precisions, marks, and what a parser has against nodes."""

import enum
import types
from pathlib import Path

import pytest

from tensortriage_engines.tensorrt.worker.network import (
    Parsed,
    constrain,
    constrain_as_typed,
    element_types,
    mark_debug,
    mark_unfused,
    owners,
    say,
)
from tensortriage_worker.adapter import AdapterError, AdapterFailure

DataType = enum.Enum("DataType", ["FLOAT", "HALF", "INT32"])
LayerType = enum.Enum("LayerType", ["CONVOLUTION", "CONSTANT", "SHUFFLE", "SHAPE", "ELEMENTWISE"])
TRT = types.SimpleNamespace(DataType=DataType)


class Layer:
    """A layer of one output."""

    def __init__(self, name, kind, value, dtype="FLOAT", metadata="", shape_tensor=False):
        self.name, self.type, self.metadata, self.num_outputs = name, LayerType[kind], metadata, 1
        self._output = types.SimpleNamespace(name=value, dtype=DataType[dtype], is_shape_tensor=shape_tensor)
        self.precision, self.output_type = None, None

    def get_output(self, index):
        return self._output

    def set_output_type(self, index, dtype):
        self.output_type = dtype


def network(*layers: Layer):
    return types.SimpleNamespace(num_layers=len(layers), get_layer=lambda index: layers[index])


def old():
    """Return a network as 8.5 makes it: no metadata, several layers a node, the last one making the node's value."""
    return [
        Layer("w", "CONSTANT", "(Unnamed Layer* 0) [Constant]_output"),
        Layer("conv", "CONVOLUTION", "a"),
        Layer("bias", "CONSTANT", "(Unnamed Layer* 2) [Constant]_output"),
        Layer("(Unnamed Layer* 3) [Shuffle]", "SHUFFLE", "broadcast"),
        Layer("add", "ELEMENTWISE", "b"),
        Layer("shape", "SHAPE", "s", "INT32", shape_tensor=True),
    ]


VALUES = {"a": "conv", "b": "add", "s": "shape"}


def test_layers_belong_to_the_node_whose_value_they_lead_to():
    assert [(layer.name, node) for layer, node in owners(network(*old()), VALUES)] == [
        ("w", ""), ("conv", "conv"), ("bias", ""), ("(Unnamed Layer* 3) [Shuffle]", "add"), ("add", "add"),
        ("shape", "shape"),
    ]  # fmt: skip


def test_metadata_say_more_than_values():
    layers = [Layer("x", "SHUFFLE", "t", metadata="[ONNX Layer: soft]"), Layer("y", "ELEMENTWISE", "b")]
    assert [node for _, node in owners(network(*layers), VALUES)] == ["soft", "add"]


def test_kept_nodes_are_constrained_with_all_their_layers_and_nothing_else():
    layers = old()
    assert constrain(TRT, network(*layers), ["add", "shape"], VALUES) == ["add"]  # shapes are no floats
    constrained = {layer.name for layer in layers if layer.precision is DataType.FLOAT}
    assert constrained == {"(Unnamed Layer* 3) [Shuffle]", "add"}
    assert all((layer.output_type is None) == (layer.precision is None) for layer in layers)


def test_a_typed_network_is_constrained_as_it_is_typed():
    layers = [Layer("a", "CONVOLUTION", "a", "HALF"), Layer("b", "ELEMENTWISE", "b"), Layer("c", "SHAPE", "s", "INT32")]
    constrain_as_typed(TRT, network(*layers))
    assert [layer.precision for layer in layers] == [DataType.HALF, DataType.FLOAT, None]


def test_a_node_whose_layers_make_no_floats_is_not_constrained():
    layers = [Layer("n", "ELEMENTWISE", "a", "INT32"), Layer("d", "CONSTANT", "b")]
    constrain_as_typed(TRT, network(*layers))
    assert [layer.precision for layer in layers] == [None, None]
    assert element_types(network(*layers)) == {"INT32", "FLOAT"}


def test_layers_without_a_value_of_the_model_belong_to_none():
    left = [Layer("x", "SHUFFLE", "t"), Layer("y", "SHUFFLE", "u", metadata="not one of ONNX")]
    assert [node for _, node in owners(network(*left), VALUES)] == ["", ""]


def test_tensors_are_marked_where_the_release_can():
    made, marked = network(*old()), []
    assert mark_debug(made, ["a", "b"]) == []
    assert mark_unfused(made) is False
    made.mark_debug = lambda tensor: marked.append(tensor.name) or tensor.name != "b"
    made.mark_unfused_tensors_as_debug_tensors = lambda: 1
    assert mark_debug(made, ["a", "absent", "b"]) == ["a"]
    assert marked == ["a", "b"]
    assert mark_unfused(made) is True


class Error:
    """What a parser of 8.5 has against a node: without the name and the operator of the node."""

    def node(self):
        return 3

    def code(self):
        return types.SimpleNamespace(name="UNSUPPORTED_NODE")

    def desc(self):
        return "not\n here"


class NamedError(Error):
    """The same of later releases."""

    def node_name(self):
        return "conv"

    def node_operator(self):
        return "Conv"


class Parser:
    """A parser with prepared errors."""

    errors = ()

    def __init__(self, network, logger):
        self.network, self.num_errors = network, len(self.errors)

    def get_error(self, index):
        return self.errors[index]

    def parse_from_file(self, path):
        return not self.errors


def release(parser=Parser, **flags):
    """Return a TensorRT module whose networks are the flags that they are made with."""
    creation = types.SimpleNamespace(**(flags or {"EXPLICIT_BATCH": 0, "STRONGLY_TYPED": 1}))
    return types.SimpleNamespace(NetworkDefinitionCreationFlag=creation, OnnxParser=parser)


BUILDER = types.SimpleNamespace(create_network=lambda flags: flags)


@pytest.mark.parametrize(
    ("flags", "strong", "made"),
    [
        ({"EXPLICIT_BATCH": 0, "STRONGLY_TYPED": 1}, True, (3, True)),
        ({"EXPLICIT_BATCH": 0, "STRONGLY_TYPED": 1}, False, (1, False)),
        ({"EXPLICIT_BATCH": 0}, True, (1, False)),
        ({"STRONGLY_TYPED": 1}, True, (2, True)),
    ],
)
def test_a_network_is_typed_strongly_where_the_release_can(flags, strong, made):
    parsed = Parsed(release(**flags), BUILDER, None, strong=strong)
    assert (parsed.network, parsed.strong) == made


def test_a_refusal_to_parse_names_up_to_three_nodes():
    refusing = type("Refusing", (Parser,), {"errors": [Error(), NamedError(), Error(), Error()]})
    with pytest.raises(AdapterError) as caught:
        Parsed(release(refusing), BUILDER, None, strong=True).parse(Path("m.onnx"))
    assert caught.value.kind is AdapterFailure.BUILD
    assert caught.value.message == "node 3: not here; node 'conv' (Conv): not here; node 3: not here"
    Parsed(release(), BUILDER, None, strong=True).parse(Path("m.onnx"))
    silent = type("Silent", (Parser,), {"parse_from_file": lambda self, path: False})
    with pytest.raises(AdapterError, match="no reason"):
        Parsed(release(silent), BUILDER, None, strong=True).parse(Path("m.onnx"))


def test_a_problem_with_an_operator_alone_is_told_with_it():
    assert say({"node": "", "op": "Conv", "index": 1, "reason": "no"}) == "node '' (Conv): no"
