"""Tensors that give another tensor a size which the data decide and nothing bounds.

An engine that plans memory ahead (TensorRT) must know the largest size of every tensor. The size of what Range, Expand
or Tile make can be any number that the network computes. It is bounded when it follows from shapes alone, since the
user bounds those of the inputs; it is not when the contents of an input lead to it, unless a Min caps it on the way.
The list is what Polygraphy's ``--list-unbounded-dds`` means; `triage surgeon sanitize` inserts such a Min.
"""

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node

SIZE_OPERANDS: dict[str, tuple[int, ...]] = {
    "ConstantOfShape": (0,), "Expand": (1,), "OneHot": (1,), "Pad": (1,), "Range": (0, 1, 2), "Resize": (2, 3),
    "Tile": (1,), "Upsample": (1,),
}  # fmt: skip
"""Inputs whose numbers determine the size of the result; Reshape, Slice and the like only divide their operand."""

_ONLY_SIZES = frozenset({"Shape", "Size", "SequenceLength"})


@frozen_dataclass
class UnboundedSize:
    """A tensor whose numbers determine a size: ``value`` is an input of ``node``, an ``op_type``."""

    value: str
    node: str
    op_type: str


def unbounded_sizes(graph: Graph) -> tuple[UnboundedSize, ...]:
    """Return the tensors that decide sizes and depend on data, each with the first node that takes a size from it."""
    found: dict[str, UnboundedSize] = {}
    for node in graph.nodes:
        for value in _size_operands(node):
            if value not in found and value not in graph.constants and _depends_on_data(value, graph):
                found[value] = UnboundedSize(value, node.name, node.op_type)
    return tuple(found.values())


def _size_operands(node: Node) -> tuple[str, ...]:
    positions = SIZE_OPERANDS.get(node.op_type, ()) if not node.domain else ()
    return tuple(node.inputs[i] for i in positions if i < len(node.inputs) and node.inputs[i])


def _depends_on_data(value: str, graph: Graph) -> bool:
    """Whether the numbers of a value depend on those of an input that is fed, other than through shapes and Min."""
    pending, seen = [value], {value}
    while pending:
        name = pending.pop()
        producer = graph.producer(name)
        if producer is None:
            if name not in graph.constants:
                return True
        elif producer.op_type not in _ONLY_SIZES and producer.op_type != "Min":
            fresh = [used for used in producer.uses if used not in seen]
            seen.update(fresh)
            pending += fresh
    return False
