"""Nodes at which a file may mean something else than its original: one engine ran both, so that equal nodes agree."""

from tensortriage.model.sdk import Correspondence, Graph
from tensortriage_meanings.apart import OTHERWISE_SINCE


def differing(matched: Correspondence, graph: Graph) -> frozenset[str]:
    """Return the names of the nodes without an equal counterpart in the other model.

    Equal are operator, attributes, wiring, weights but for their rounding, and what both opsets mean by the operator.

    Args:
        matched: Both models.
        graph: That of the original or of the file.
    """
    opsets = matched.original.opset, matched.changed.opset
    equal = set()
    for own, other in matched.diff.pairs.items():
        since, _ = OTHERWISE_SINCE.get(matched.original.graph.node(own).op_type, (0, ""))
        changes = matched.diff.at.get(other, ())
        if not min(opsets) < since <= max(opsets) and all(each.kind.value == "weight-rounded" for each in changes):
            equal.add(other if graph is matched.changed.graph else own)
    return frozenset(node.name for node in graph.nodes) - equal
