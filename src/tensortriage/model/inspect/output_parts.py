"""Which parts does a graph put an output together of? The operands of a Concat at its end are answers of their own.

Boxes of 640 and scores of 1 in one tensor are two outputs: the RMS of the whole hides that every score is lost.
"""

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.model.ir.graph import Graph, Node

PASSES = frozenset({"Identity", "Transpose", "QuantizeLinear", "DequantizeLinear"})
"""Operators between a Concat and an output that leave each element where an axis says."""
SCALES = frozenset({"Add", "Div", "Mul", "Sub"})
"""Operators that leave each element of any operand where it is, as where boxes become pixels of an image."""


@dataclasses.dataclass(frozen=True, slots=True)
class OutputPart:
    """One part of an output.

    Attributes:
        value: The value of the graph that it holds, an operand of `concat`.
        concat: The Concat.
        axis: Axis of the output along which the parts lie.
        start: Its first index on that axis.
        stop: One beyond its last.
    """

    value: str
    concat: Node
    axis: int
    start: int
    stop: int

    def of(self, output: np.ndarray) -> np.ndarray:
        """Return the part of an output's array."""
        return output[(*(slice(None),) * self.axis, slice(self.start, self.stop))]


def last_concat(graph: Graph, output: str) -> tuple[Node | None, tuple[int, ...]]:
    """Return the Concat that an output is made by, through `PASSES` and `SCALES`, and how axes are permuted behind it.

    Returns:
        The Concat, None where there is none; for every axis of the output the Concat's, empty for the same order.
    """
    way = way_to_concat(graph, output)
    order: tuple[int, ...] = ()
    for node in way[:0:-1]:
        if node.op_type == "Transpose":
            perm = node.attributes.get("perm")
            if not isinstance(perm, tuple):
                return None, ()
            order = tuple(perm[axis] for axis in order) if order else tuple(int(axis) for axis in perm)
    return (way[0] if way else None), order


def way_to_concat(graph: Graph, value: str) -> list[Node]:
    """Return the Concat that a value is made by, and the nodes between, in order; nothing where none makes it."""
    node = graph.producer(value)
    if node is None or node.op_type == "Concat":
        return [node] if node is not None else []
    sources = node.inputs if node.op_type in SCALES else node.inputs[:1] if node.op_type in PASSES else ()
    ways = (way_to_concat(graph, name) for name in sources if name)
    found = next(filter(None, ways), [])
    return [*found, node] if found else []


def output_parts(graph: Graph, output: str, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[OutputPart]:
    """Yield the parts of an output in their order; nothing where no Concat makes it, or a shape is not known.

    Args:
        graph: The graph.
        output: Name of the output.
        shapes: Shapes of values.
    """
    concat, order = last_concat(graph, output)
    if concat is None or any(name not in shapes for name in concat.inputs):
        return
    rank, given, start = len(shapes[concat.inputs[0]]), concat.attributes.get("axis"), 0
    axis = given % rank if isinstance(given, int) and rank else 0
    for name in concat.inputs:
        stop = start + shapes[name][axis]
        yield OutputPart(name, concat, order.index(axis) if order else axis, start, stop)
        start = stop
