"""Every node of a model, one after the other, as ``triage inspect model --show layers attrs`` lists them."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import onnx

from tensortriage.sdk import (
    UNKNOWN,
    ConstantFacts,
    NodeOrigin,
    ValueFacts,
    attribute_text,
    bodies,
    declared_value,
    op_label,
    read_origin,
    stored_tensor,
)
from tensortriage_inspect.constants import constant_value


@dataclasses.dataclass(frozen=True, slots=True)
class LayerFacts:
    """One node.

    Attributes:
        where: Path to the graph that holds it: empty for the main graph, ``if_3/then_branch`` for a body, ``function
            domain::name`` for a function.
        index: Position in that graph as the file has it.
        name: As the file has it, perhaps empty or not unique.
        op_type: Operator, with its domain when that is not the standard one.
        inputs: Its inputs, types and shapes as far as declared; an omitted one has an empty name.
        outputs: Output values, in the same form.
        attributes: Name to text.
        origin: Module, class and line of the source network from which it was made, as far as the file holds them.
    """

    where: str
    index: int
    name: str
    op_type: str
    inputs: tuple[ValueFacts, ...]
    outputs: tuple[ValueFacts, ...]
    attributes: Mapping[str, str]
    origin: NodeOrigin = UNKNOWN


def list_layers(proto: onnx.ModelProto) -> tuple[LayerFacts, ...]:
    """Return all nodes in the order of the file, bodies right behind the node that holds them, functions last."""
    layers = list(_graph_layers(proto.graph, "", {}))
    for function in proto.functions:
        known = {info.name: declared_value(info) for info in function.value_info}
        layers += _layers(function.node, f"function {function.domain}::{function.name}", known)
    return tuple(layers)


def _graph_layers(graph: onnx.GraphProto, where: str, outer: Mapping[str, ValueFacts]) -> Iterator[LayerFacts]:
    known = dict(outer)
    known.update((info.name, declared_value(info)) for info in (*graph.input, *graph.value_info, *graph.output))
    known.update((tensor.name, _facts(stored_tensor(tensor, tensor.name))) for tensor in graph.initializer)
    for constant in filter(None, map(constant_value, graph.node)):
        known[constant.name] = _facts(constant)
    return _layers(graph.node, where, known)


def _layers(nodes: Sequence[onnx.NodeProto], where: str, known: Mapping[str, ValueFacts]) -> Iterator[LayerFacts]:
    for index, node in enumerate(nodes):
        yield LayerFacts(
            where,
            index,
            node.name,
            op_label(node),
            tuple(known.get(name) or ValueFacts(name, "", None) for name in node.input),
            tuple(known.get(name) or ValueFacts(name, "", None) for name in node.output),
            {attribute.name: attribute_text(attribute) for attribute in node.attribute},
            read_origin(node.name, {prop.key: prop.value for prop in node.metadata_props}, node.doc_string),
        )
        for attribute, body in bodies(node):
            inside = f"{node.name or f'{node.op_type}_{index}'}/{attribute}"
            yield from _graph_layers(body, f"{where}/{inside}" if where else inside, known)


def _facts(constant: ConstantFacts) -> ValueFacts:
    return ValueFacts(constant.name, constant.dtype.label, constant.shape)
