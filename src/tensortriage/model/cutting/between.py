"""Pieces of a model between the values that are seen: which nodes make one of others."""

from collections.abc import Collection

from tensortriage.model.ir.graph import Graph, Node


def between(graph: Graph, value: str, known: Collection[str]) -> tuple[Node, ...]:
    """Return the nodes that make a value of known values, in topological order, those of constants left out."""
    found: dict[int, Node] = {}
    pending = [value]
    while pending:
        node = graph.producer(pending.pop())
        if node is None or node.index in found or (not node.uses and node.op_type == "Constant"):
            continue
        found[node.index] = node
        pending += [name for name in node.uses if name not in known]
    return tuple(found[index] for index in sorted(found))
