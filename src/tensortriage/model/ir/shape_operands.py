"""Values that decide shapes rather than carry data: they must never be rounded, and engines want them constant.

A value is shape-like when it feeds a shape operand (the second input of Reshape, the bounds of Slice, the sizes of
Resize, ...), or when it is made from shapes and constants alone and leads to such an operand. A shape operand computed
from data is shape-like itself, but the data behind it are not.
"""

from collections.abc import Collection, Iterable
from typing import Protocol

SHAPE_OPERANDS: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2), "ConstantOfShape": (0,),
    "CumSum": (1,), "CumProd": (1,), "DFT": (1, 2), "Expand": (1,), "HammingWindow": (0,), "HannWindow": (0,),
    "MaxUnpool": (2,), "OneHot": (1,), "Pad": (1, 3), "Range": (0, 1, 2), "ReduceL1": (1,), "ReduceL2": (1,),
    "ReduceLogSum": (1,), "ReduceLogSumExp": (1,), "ReduceMax": (1,), "ReduceMean": (1,), "ReduceMin": (1,),
    "ReduceProd": (1,), "ReduceSum": (1,), "ReduceSumSquare": (1,), "Reshape": (1,), "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4), "Split": (1,), "SplitToSequence": (1,), "Squeeze": (1,), "STFT": (1, 3), "Tile": (1, 2),
    "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,),
}  # fmt: skip
"""Input positions that hold shapes, axes, sizes or counts, per standard operator (onnx.ai operator pages)."""

_OF_RUNTIME = {"GroupQueryAttention": (6,)}
"""Operands that are shapes of operators of ONNX Runtime (domain com.microsoft).

It knows how large the cache becomes from a constant alone; else it takes it to be as large as before, and fails where
it plans memory by that (1.32.0).
"""

_SHAPE_SOURCES = frozenset({"Shape", "Size", "SequenceLength"})


class _NodeLike(Protocol):
    @property
    def op_type(self) -> str: ...
    @property
    def domain(self) -> str: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def uses(self) -> tuple[str, ...]: ...


def shape_positions(op_type: str, domain: str) -> tuple[int, ...]:
    """Return the input positions of an operator that hold shapes, axes, sizes or counts."""
    if domain in ("", "ai.onnx"):
        return SHAPE_OPERANDS.get(op_type, ())
    return _OF_RUNTIME.get(op_type, ()) if domain == "com.microsoft" else ()


def shape_operands(node: _NodeLike) -> tuple[str, ...]:
    """Return the values that a node takes as shape operands."""
    positions = shape_positions(node.op_type, node.domain)
    return tuple(node.inputs[i] for i in positions if i < len(node.inputs) and node.inputs[i])


def shape_like_values(nodes: Iterable[_NodeLike], constants: Collection[str]) -> frozenset[str]:
    """Return the shape-like values of a graph.

    Args:
        nodes: In topological order.
        constants: Names of initializers and of the outputs of Constant nodes.
    """
    nodes = tuple(nodes)
    from_shapes = set(constants)
    for node in nodes:
        if node.op_type in _SHAPE_SOURCES or (node.uses and from_shapes.issuperset(node.uses)):
            from_shapes.update(filter(None, node.outputs))
    found = {value for node in nodes for value in shape_operands(node)}
    for node in reversed(nodes):
        if node.op_type not in _SHAPE_SOURCES and not found.isdisjoint(from_shapes.intersection(node.outputs)):
            found.update(from_shapes.intersection(node.uses))
    return frozenset(found)
