"""Every node gets a unique name, the same one on every load of the same file, and keeps it through every edit."""

from collections.abc import Callable, Collection, Iterator, Mapping

import onnx_ir as ir

from tensortriage.model.ir.attributes import bodies
from tensortriage.model.ir.traversal import all_nodes, top_graphs


def name_nodes(model: ir.Model) -> None:
    """Rename, in place, the nodes of the main graph that are unnamed or repeat an earlier node's name.

    The new name is ``{op_type}_{index}`` with the node's position in the graph; when that is taken, ``_2``, ``_3`` ...
    is appended. Named nodes keep their names: the first of several with one name is the one that keeps it.
    """
    taken = {node.name for node in model.graph if node.name}
    seen: set[str] = set()
    for index, node in enumerate(model.graph):
        if not node.name or node.name in seen:
            node.name = _free(f"{node.op_type}_{index}", taken)
            taken.add(node.name)
        seen.add(node.name)


def _free(wanted: str, taken: set[str]) -> str:
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    return name


def restorer_of_names(model: ir.Model) -> Callable[[], None]:
    """Record the names of all values and nodes; return a function that restores them on those that still exist.

    Passes of onnx_ir and onnxscript number the names that occur in several bodies, which is no fault in ONNX, and put
    the name of a node in front of the names in a body that it is replaced by. A value that took over the name of
    another one keeps it; a name that was given away meanwhile is not given twice.
    """
    values = {value: value.name for graph in _every_graph(model) for value in _values(graph)}
    nodes = {node: node.name for node in all_nodes(model)}
    taken_over = {value.name for graph in top_graphs(model) for value in _values(graph)}

    def restore() -> None:
        for graph in top_graphs(model):
            _restore(graph, values, taken_over, frozenset())
        used = {node.name for node in all_nodes(model)}
        for node in all_nodes(model):
            old = nodes.get(node)
            if old and old not in used:
                node.name = old
                used.add(old)

    return restore


def _restore(
    graph: ir.Graph | ir.Function,
    values: Mapping[ir.Value, str | None],
    taken_over: Collection[str | None],
    outer: frozenset[str | None],
) -> None:
    """Give the values of a graph and its bodies their old names where these hide no other name and are not hidden."""
    taken = {value.name for inner in (graph, *graph.subgraphs()) for value in _values(inner)}
    for value in _values(graph):
        old = values.get(value)
        if old and old != value.name and value.name not in taken_over and old not in taken and old not in outer:
            value.name = old
            taken.add(old)
    scope = outer | {value.name for value in _values(graph)}
    for node in graph:
        for body in bodies(node):
            _restore(body, values, taken_over, scope)


def _every_graph(model: ir.Model) -> Iterator[ir.Graph | ir.Function]:
    for graph in top_graphs(model):
        yield graph
        yield from graph.subgraphs()


def _values(graph: ir.Graph | ir.Function) -> tuple[ir.Value, ...]:
    initializers = graph.initializers.values() if isinstance(graph, ir.Graph) else ()
    return (*graph.inputs, *initializers, *(value for node in graph for value in node.outputs))
