"""Sizes that constants of the graph ask of open dimensions: rows of a weight, width of a state, parts of a Reshape.

Shape inference carries the name of an open dimension as far as operators leave it as it is. Where it meets a
dimension of known size that must be the same, that is its size.
"""

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from tensortriage.inputs.synthetic.open_sizes import Dimension
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.inferred_specs import shapes_with
from tensortriage.values.spec import ValueSpec

Size = int | str | None
"""A number, the name of an open dimension, or neither."""
Pairs = Iterator[tuple[Size, Size]]
"""Sizes that must be equal for a node to run."""
_BROADCAST = frozenset(
    {"Add", "Sub", "Mul", "Div", "Pow", "Where", "Max", "Min", "Mean", "PRelu", "Equal", "And", "Or"}
)
_STATES = (((0, 2), (1, 2)), ((5, 2), (2, 2)), ((5, 0), (1, 0)), ((6, 2), (2, 2)), ((6, 0), (1, 0)))
_EQUAL: Mapping[str, Sequence[tuple[tuple[int, int], tuple[int, int]]]] = {
    "MatMul": (((0, -1), (1, -2)),), "ConvTranspose": (((0, 1), (1, 0)),), "LayerNormalization": (((0, -1), (1, -1)),),
    "BatchNormalization": (((0, 1), (1, 0)),), "InstanceNormalization": (((0, 1), (1, 0)),),
    "RNN": _STATES, "LSTM": _STATES, "GRU": _STATES,
}  # fmt: skip
"""Operand and axis of sizes that are equal, by operator."""
_FIRST, _MOST_STEPS, _LARGEST = (64, 96), 12, 1 << 14
"""Sizes that solving begins with; the number of pixels goes with the square, whose root takes 5 steps."""


def required_sizes(model: Model, dimensions: Mapping[Dimension, tuple[ValueSpec, int]]) -> dict[Dimension, int]:
    """Return the sizes that the graph asks of open dimensions, as far as they are seen.

    Args:
        model: The model.
        dimensions: Open dimensions, each with an input and the axis at which it stands.
    """
    names = {dimension: f"open dimension {number}" for number, dimension in enumerate(dimensions)}
    symbols = {name: dimension for dimension, name in names.items()}
    leading = [name for dimension, name in names.items() if dimensions[dimension][1] == 0]
    found: dict[Dimension, int] = {}
    for _, one, other in _meetings(model, names, leading):
        for asked, size in ((one, other), (other, one)):
            if asked in symbols and isinstance(asked, str) and isinstance(size, int) and size > 0:
                found.setdefault(symbols[asked], size)
    return found


def solved_size(model: Model, free: Collection[Dimension], others: Mapping[Dimension, int]) -> int | None:
    """Return the size of free dimensions, the same for all, with which a size behind strides fits a constant's.

    That is the root of their difference, found by the secant method; None where none differ, or it is not found.

    Args:
        model: The model.
        free: The dimensions.
        others: Sizes of the other open dimensions.
    """

    def differs(size: int) -> tuple[str, tuple[int, int]] | None:
        for node, one, other in _meetings(model, {**others, **dict.fromkeys(free, size)}, ()):
            if isinstance(one, int) and isinstance(other, int) and one != other:
                return node, (one, other)
        return None

    before, size = _FIRST
    last, now = differs(before), differs(size)
    for _ in range(_MOST_STEPS):
        if last is None or now is None:
            return None if last is None else size
        side = int(last[1][0] == now[1][0])  # the one that moves
        was, reached, wanted = last[1][side], now[1][side], now[1][1 - side]
        if last[0] != now[0] or was == reached:
            return None
        step = round((wanted - reached) * (size - before) / (reached - was))
        before, last = size, now
        size = min(max(size + (step or (1 if wanted > reached else -1)), 1), _LARGEST)
        now = differs(size)
    return None


def _meetings(
    model: Model, sizes: Mapping[Dimension, str] | Mapping[Dimension, int], leading: Collection[str]
) -> Iterator[tuple[str, Size, Size]]:
    """Yield node and sizes that must be equal, with names or sizes for open dimensions."""
    places = [(spec.name, axis, size) for spec in model.inputs for axis, size in enumerate(spec.shape or ())]
    given: dict[tuple[str, int], str | int] = {
        (name, axis): size
        for dimension, size in sizes.items()
        for name, axis, declared in places
        if dimension in (declared, (name, axis))
    }
    shapes = shapes_with(model, given)
    for node in model.graph.nodes:
        operands = [shapes.get(name, ()) for name in node.inputs]
        for one, other in _equal_sizes(model.graph, node, operands, leading):
            yield node.name, one, other


def _equal_sizes(graph: Graph, node: Node, shapes: Sequence[Sequence[Size]], leading: Collection[str]) -> Pairs:
    def at(operand: int, axis: int) -> Size:
        shape = shapes[operand] if operand < len(shapes) else ()
        return shape[axis] if -len(shape) <= axis < len(shape) else None

    attributes = node.attributes
    if node.op_type in _BROADCAST:
        for one, other in itertools.combinations(shapes, 2):
            yield from (
                pair for pair in zip(reversed(one), reversed(other), strict=False) if 1 not in pair
            )  # what is 1 fits any size
    elif node.op_type == "Concat":
        for one, other in itertools.combinations([shape for shape in shapes if shape], 2):
            axis = int(str(attributes.get("axis", 0))) % len(one)
            yield from (pair for place, pair in enumerate(zip(one, other, strict=False)) if place != axis)
    elif node.op_type == "Gemm":
        yield at(0, 0 if attributes.get("transA") else 1), at(1, 1 if attributes.get("transB") else 0)
    elif node.op_type == "Conv" and isinstance(channels := at(1, 1), int):
        yield at(0, 1), channels * int(str(attributes.get("group", 1)))
    elif node.op_type == "Reshape" and node.inputs[1] in graph.constants:
        yield from _reshaped(shapes[0], graph.weight(node.inputs[1]).tolist(), leading)
    for one, other in _EQUAL.get(node.op_type, ()):
        yield at(*one), at(*other)


def _reshaped(shape: Sequence[Size], target: Sequence[int], leading: Collection[str]) -> Pairs:
    """Yield the smallest size of the one open dimension with which the elements fill the requested shape."""
    before = list(shape)
    after = [size or (shape[axis] if axis < len(shape) else None) for axis, size in enumerate(target) if size != -1]
    for size in tuple(after):  # what goes through as it is
        if isinstance(size, str) and size in before:
            before.remove(size)
            after.remove(size)
    names = [size for size in before if isinstance(size, str)]
    free = [name for name in names if name not in leading] or names
    there = math.prod(size for size in before if isinstance(size, int))
    wanted = math.prod(size if isinstance(size, int) else 0 for size in after)
    if None not in before and len(free) == 1 and there and wanted:
        yield free[0], wanted // math.gcd(wanted, there)
