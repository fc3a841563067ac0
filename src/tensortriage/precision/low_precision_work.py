"""How much of the heavy work stays in the lower format: multiplications of MatMul, Gemm and Conv."""

import math
from collections.abc import Collection, Mapping

from tensortriage.model.ir.graph import Graph, Node
from tensortriage.values.spec import ValueSpec

HEAVY = ("MatMul", "Gemm", "Conv", "ConvTranspose")


def low_share(graph: Graph, specs: Mapping[str, ValueSpec], wide: Collection[str]) -> float | None:
    """Return the share of multiplications in nodes outside of a set; None when there are none or sizes are not known.

    Args:
        graph: The graph.
        specs: Shapes of values, as recorded in a run.
        wide: Nodes that compute in the higher precision.
    """
    total = low = 0.0
    for node in graph.nodes:
        if node.op_type in HEAVY and not node.domain:
            count = multiplications(node, specs)
            if count is None:
                return None
            total += count
            low += 0.0 if node.name in wide else count
    return low / total if total else None


def multiplications(node: Node, specs: Mapping[str, ValueSpec]) -> float | None:
    """Return how many multiplications a MatMul, Gemm or Conv makes; None when a size is not known."""
    left, right, made = (_shape(specs, name) for name in (node.inputs[0], node.inputs[1], node.outputs[0]))
    if left is None or right is None or made is None:
        return None
    if node.op_type == "MatMul":
        return math.prod(made) * left[-1]
    if node.op_type == "Gemm":
        return math.prod(made) * left[0 if node.attributes.get("transA") else 1]
    if node.op_type == "Conv":
        return math.prod(made) * math.prod(right[1:])
    return math.prod(left) * math.prod(right[1:])


def _shape(specs: Mapping[str, ValueSpec], name: str) -> tuple[int, ...] | None:
    return specs[name].sizes if name in specs and specs[name].is_sized else None
