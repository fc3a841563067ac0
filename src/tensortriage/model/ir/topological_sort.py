"""Nodes in an order in which every value is made before it is used.

ONNX demands that order of a file, but exporters and hand-made edits break it, and onnxruntime forgives them.
"""

import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.ir.attributes import bodies
from tensortriage.model.ir.display_names import quoted
from tensortriage.model.ir.traversal import outer_values, top_graphs
from tensortriage.values.grouping import grouped


def sort_nodes(model: ir.Model) -> None:
    """Bring the nodes of a model into topological order, in place; an order that is already right is unchanged.

    Raises:
        ModelError: When values depend on each other in a circle (slug ``graph-cycle``).
    """
    for graph in top_graphs(model):
        if _in_order(graph, set()):
            continue
        try:
            graph.sort()
        except ValueError as error:
            raise _cycle(graph) from error


def _in_order(graph: ir.Graph | ir.Function, pending: set[int]) -> bool:
    """Whether every node, bodies included, uses only values made before it.

    Args:
        graph: The graph.
        pending: Identities of the nodes around this graph that did not run yet.
    """
    pending |= {id(node) for node in graph}
    for node in graph:
        for value in node.inputs:
            if value is not None and (producer := value.producer()) is not None and id(producer) in pending:
                return False
        if not all(_in_order(body, pending) for body in bodies(node)):
            return False
        pending.discard(id(node))
    return True


def _cycle(graph: ir.Graph | ir.Function) -> ModelError:
    circle = next(filter(None, map(_circle, (graph, *graph.subgraphs()))), [])
    shown = " -> ".join(quoted(node.name or node.op_type) for node in (*circle[-1:], *circle)[:6])
    return ModelError(
        f"{len(circle)} nodes depend on each other in a circle: {shown}",
        slug="graph-cycle",
        cure="the file is damaged or was edited wrongly: export the model again",
    )


def _circle(graph: ir.Graph | ir.Function) -> list[ir.Node]:
    """Return nodes of one graph of which each uses the one before it, and the first the last; or nothing."""
    before = {id(node): _predecessors(node) for node in graph}
    users = grouped((id(made), node) for node in graph for made in before[id(node)])
    missing = {key: len(made) for key, made in before.items()}
    ready = [node for node in graph if not missing[id(node)]]
    while ready:
        for user in users.get(id(ready.pop()), ()):
            missing[id(user)] -= 1
            if not missing[id(user)]:
                ready.append(user)
    # Every node that still misses something has a predecessor that does too, so going back must come round.
    trail = [node for node in graph if missing[id(node)]][:1]
    while trail:
        node = next(made for made in before[id(trail[-1])] if missing[id(made)])
        if node in trail:
            return trail[trail.index(node) :][::-1]
        trail.append(node)
    return []


def _predecessors(node: ir.Node) -> list[ir.Node]:
    """Return the nodes of the same graph whose results a node, or a body in it, uses; each once."""
    makers = (value.producer() for value in outer_values(node))
    return list(dict.fromkeys(made for made in makers if made is not None and made.graph is node.graph))
