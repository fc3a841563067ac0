"""Every graph, node and tensor of an onnx_ir model: main graph, bodies of If, Loop and Scan, and functions."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import onnx_ir as ir

from tensortriage.model.ir.attributes import bodies


def top_graphs(model: ir.Model) -> tuple[ir.Graph | ir.Function, ...]:
    """Return the main graph and the functions."""
    return (model.graph, *model.functions.values())


def all_nodes(model: ir.Model) -> Iterator[ir.Node]:
    """Yield every node: main graph, functions, and the bodies in both."""
    for graph in top_graphs(model):
        yield from ir.traversal.RecursiveGraphIterator(graph)


def all_graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """Yield the main graph and every body, those in functions included."""
    yield model.graph
    yield from model.graph.subgraphs()
    for function in model.functions.values():
        yield from function.subgraphs()


def replace_tensors(model: ir.Model, replace: Callable[[Any], Any]) -> None:
    """Apply a function to every tensor of a model, in place: initializers and attributes."""
    for graph in all_graphs(model):
        for value in graph.initializers.values():
            if value.const_value is not None:
                value.const_value = replace(value.const_value)
    for node in all_nodes(model):
        for name, attr in list(node.attributes.items()):
            if attr.is_ref():
                continue
            if attr.type == ir.AttributeType.TENSOR:
                if (new := replace(attr.value)) is not attr.value:
                    node.attributes[name] = ir.AttrTensor(name, new)
            elif attr.type == ir.AttributeType.TENSORS:
                node.attributes[name] = ir.AttrTensors(name, [replace(tensor) for tensor in attr.value])


def walk_bodies(node: ir.Node) -> Iterator[tuple[ir.Graph, ir.Node | None]]:
    """Yield every body a node holds, at any depth, first with None and then with each of its nodes."""
    pending = list(reversed(bodies(node)))
    while pending:
        graph = pending.pop()
        yield graph, None
        for inner in graph:
            yield graph, inner
            pending.extend(reversed(bodies(inner)))


def captures(graphs: Sequence[ir.Graph]) -> tuple[ir.Value, ...]:
    """Return the values that bodies, or bodies in them, use from outside of all of them, in order of first use."""
    own: set[ir.Value] = set()
    used: dict[ir.Value, None] = {}
    pending = list(reversed(graphs))
    while pending:
        graph = pending.pop()
        own.update(graph.inputs, graph.initializers.values())
        for node in graph:
            own.update(node.outputs)
            used.update((value, None) for value in node.inputs if value is not None)
            pending.extend(bodies(node))
        used.update((value, None) for value in graph.outputs)
    return tuple(value for value in used if value not in own)


def outer_values(node: ir.Node) -> tuple[ir.Value, ...]:
    """Return the values that a node needs from outside: its inputs, without omitted ones, then its bodies' captures."""
    given = (value for value in node.inputs if value is not None)
    return tuple(dict.fromkeys((*given, *captures(bodies(node)))))
