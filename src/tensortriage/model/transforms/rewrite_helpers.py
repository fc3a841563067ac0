"""Small moves on onnx_ir graphs that every transformation shares: finding nodes and values, and naming new ones.

A transformation clones a model, edits the clone and wraps it again; the tensors of the weights are shared between both,
so nothing here ever renames an initializer (onnx_ir would rename the shared tensor with it).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

import numpy as np
import onnx_ir as ir

from tensortriage.errors import ModelError, UsageError, did_you_mean
from tensortriage.model.ir.around_graph import around_graph
from tensortriage.model.ir.attributes import bodies, constant_tensor
from tensortriage.model.ir.traversal import outer_values, walk_bodies
from tensortriage.model.model import Model
from tensortriage.values.spec import ValueSpec

STANDARD_DOMAINS = ("", "ai.onnx")


def is_standard(node: ir.Node | None, *op_types: str) -> TypeGuard[ir.Node]:
    """Return whether a node exists, and has one of these operators of the ONNX standard."""
    return node is not None and node.op_type in op_types and node.domain in STANDARD_DOMAINS


def as_scalar(user: ir.Node, array: np.ndarray) -> np.ndarray | None:
    """Return the scalar that a Range needs where a constant is one number in an axis; None where nothing is to change.

    ONNX Runtime takes such a value that is computed or fed, and refuses the same as a constant.
    """
    return array.reshape(()) if is_standard(user, "Range") and array.ndim and array.size == 1 else None


def find_nodes(model: Model, names: Collection[str]) -> tuple[ir.Node, ...]:
    """Return the onnx_ir nodes of the main graph with these names, in topological order.

    Raises:
        UsageError: When a name is unknown (slug ``node-unknown``) or lies in the body of an If, Loop or Scan
            (slug ``node-in-body``).
    """
    wanted = set(names)
    found = tuple(node for node in model.ir.graph if node.name in wanted)
    missing = wanted.difference(node.name or "" for node in found)
    if missing:
        raise _unknown_node(model.ir.graph, min(missing))
    return found


def find_values(model: Model, names: Iterable[str]) -> dict[str, ir.Value]:
    """Return the onnx_ir values of the main graph with these names, in the order given.

    Raises:
        UsageError: When the main graph has no such value (slug ``value-unknown``).
    """
    known = {value.name: value for value in _main_values(model.ir.graph) if value.name}
    found: dict[str, ir.Value] = {}
    for name in names:
        if name not in known:
            raise UsageError(
                f"the model has no value named {name!r}", slug="value-unknown", cure=nearest_name(name, known)
            )
        found[name] = known[name]
    return found


def nearest_name(word: str, known: Iterable[str]) -> str:
    """Return a cure that offers the names of nodes or values most like an unknown one."""
    listed = "list the names with triage inspect model MODEL --show layers"
    return did_you_mean(word, known, most=3, cutoff=0.5, otherwise=listed)  # names are often as short as w1


class Names:
    """Hands out value and node names that are free in a whole model, bodies included."""

    def __init__(self, graph: ir.Graph) -> None:
        self._taken: set[str | None] = {value.name for value in (*graph.inputs, *graph.initializers.values())}
        for node in ir.traversal.RecursiveGraphIterator(graph):
            self._taken.add(node.name)
            self._taken.update(value.name for value in node.outputs)
            for body in bodies(node):
                self._taken.update(value.name for value in (*body.inputs, *body.initializers.values()))

    def release(self, names: Iterable[str | None]) -> None:
        """Release names for reuse."""
        self._taken.difference_update(names)

    def fresh(self, wanted: str) -> str:
        """Return the wanted name, with ``_2``, ``_3`` ... appended while it is taken, and take it."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name


def declared_value(name: str, spec: ValueSpec | None, known: ir.TypeProtocol | None) -> ir.Value:
    """Return a new graph input with the type and shape that are known of it.

    Args:
        name: Name of the new value.
        spec: What was recorded or inferred of it; its type goes before `known`.
        known: Its onnx_ir type; sequences and optionals are only known by this.

    Raises:
        ModelError: When its type is unknown (slug ``value-type-unknown``): engines refuse untyped inputs.
    """
    kind = known
    if spec is not None and spec.dtype is not None and (known is None or isinstance(known, ir.TensorType)):
        kind = ir.TensorType(ir.DataType(spec.dtype.value))
    if kind is None:
        source = spec.name if spec is not None else name
        raise ModelError(
            f"the element type of value {source!r} is not known, so it cannot become an input of a cut model",
            slug="value-type-unknown",
            cure="record the values of the full model first, or run shape inference on it",
        )
    shape = None if spec is None or spec.shape is None else ir.Shape(spec.shape)
    return ir.Value(name=name, type=kind, shape=shape)


def initializer(name: str, array: np.ndarray) -> ir.Value:
    """Return a new value that holds an array, to be registered as an initializer."""
    tensor = ir.tensor(array, name=name)
    return ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)


def prune_initializers(graph: ir.Graph) -> None:
    """Remove, in place, the initializers that nothing uses (and their defaults among the graph inputs)."""
    used = {value for node in graph for value in outer_values(node)} | set(graph.outputs)
    for name, value in list(graph.initializers.items()):
        if value not in used:
            del graph.initializers[name]
            if value.is_graph_input():
                graph.inputs.remove(value)


def with_graph(model: ir.Model, graph: ir.Graph) -> ir.Model:
    """Return a model like another one around a new graph; of the model-local functions, the called ones are kept."""
    functions = called_functions(model.functions, graph)
    return around_graph(graph, model, (function.clone() for function in functions))


def called_functions(functions: Mapping[ir.OperatorIdentifier, ir.Function], graph: ir.Graph) -> Sequence[ir.Function]:
    """Return the model-local functions that a graph calls, directly or through another one."""
    called: dict[ir.OperatorIdentifier, ir.Function] = {}
    pending = [graph]
    while pending:
        for node in ir.traversal.RecursiveGraphIterator(pending.pop()):
            identifier = node.op_identifier()
            if identifier in functions and identifier not in called:
                called[identifier] = functions[identifier]
                pending.append(functions[identifier].graph)
    return tuple(called.values())


def _main_values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs


def _unknown_node(graph: ir.Graph, name: str) -> UsageError:
    for node in graph:
        if any(inner is not None and inner.name == name for _, inner in walk_bodies(node)):
            return UsageError(
                f"node {name!r} lies inside a body of {node.op_type} node {node.name!r}",
                slug="node-in-body",
                cure=f"name {node.name!r} instead: a node and its bodies are cut out as one",
            )
    return UsageError(
        f"the model has no node named {name!r}",
        slug="node-unknown",
        cure=nearest_name(name, [node.name or "" for node in graph]),
    )


def replace_output(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    """Return another value from a graph wherever it returns one."""
    for position, output in enumerate(graph.outputs):
        if output is old:
            graph.outputs[position] = new


def trains(node: ir.Node) -> bool:
    """Return whether a BatchNormalization or Dropout (opset 14 and 12 or higher) is in training mode."""
    if is_standard(node, "BatchNormalization"):
        attr = node.attributes.get("training_mode")
        return attr is not None and attr.as_int() == 1
    if not is_standard(node, "Dropout") or len(node.inputs) < 3 or (value := node.inputs[2]) is None:
        return False
    producer = value.producer()
    tensor = value.const_value if producer is None else constant_tensor(producer)
    return tensor is not None and bool(tensor.numpy().any())


def insert_behind(value: ir.Value, nodes: Sequence[ir.Node]) -> None:
    """Insert nodes right behind a value: after the node that makes it, or at the start of the graph that holds it."""
    producer = value.producer()
    graph = value.graph
    assert graph is not None
    if producer is None:
        graph.insert_before(graph[0], nodes)
    else:
        for node in nodes:
            node.metadata_props.update(producer.metadata_props)  # they belong to the same module
        graph.insert_after(producer, nodes)


def take_over(value: ir.Value, nodes: Sequence[ir.Node], users: Iterable[tuple[ir.Node, int]], *, name: str) -> None:
    """Put nodes behind a value: the result of the last gets its name, its place among the outputs and its users.

    Args:
        value: What the nodes take. An input or initializer keeps its name, and its place among the outputs.
        nodes: The nodes, in order.
        users: The users of the value before the nodes were made.
        name: Another name for the value; for the result where the value keeps its own.
    """
    made = nodes[-1].outputs[0]
    for user, index in users:
        user.replace_input_with(index, made)
    if value.producer() is None:
        made.name = name
    else:
        if value.graph is not None:
            replace_output(value.graph, value, made)
        made.name, value.name = value.name, name
    insert_behind(value, nodes)


def release_bodies(node: ir.Node) -> None:
    """Empty the bodies of a node to be removed, so that their operands can be removed as well."""
    for _, inner in walk_bodies(node):
        if inner is not None:
            for index in range(len(inner.inputs)):
                inner.replace_input_with(index, None)
