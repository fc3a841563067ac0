"""Nodes at which a file may mean something else than its original: one engine ran both, so that equal nodes agree."""

import onnx

from tensortriage.model.sdk import Correspondence, Graph, Node


def differing(matched: Correspondence, graph: Graph) -> frozenset[str]:
    """Return the names of the nodes without an equal counterpart in the other model.

    Equal are operator, attributes, wiring, weights but for their rounding, and the operator's version as the opsets of
    both models have it.

    Args:
        matched: Both models.
        graph: That of the original or of the file.
    """
    original, opsets = matched.original.graph, (matched.original.opset, matched.changed.opset)
    equal = {
        name
        for own, other in matched.diff.pairs.items()
        if all(change.kind.value == "weight-rounded" for change in matched.diff.at.get(other, ()))
        and len({_version(original.node(own), opset) for opset in opsets}) == 1
        for name in ((other,) if graph is matched.changed.graph else (own,))
    }
    return frozenset(node.name for node in graph.nodes) - equal


def _version(node: Node, opset: int) -> int:
    """Return since which opset a standard operator is as it is in a given one; 0 for others."""
    try:
        return int(onnx.defs.get_schema(node.op_type, opset).since_version) if node.domain in ("", "ai.onnx") else 0
    except onnx.defs.SchemaError:
        return 0
