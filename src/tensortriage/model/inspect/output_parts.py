"""Which parts does a graph put an output together of? They are answers of their own, judged as if they were outputs.

Boxes of 640 and scores of 1 in one tensor are two outputs: the RMS of the whole hides that every score is lost. Which
elements are whose is read off the graph: a Concat at the end, slices that are written one after another (ScatterND), or
padded and added, maybe behind ops that leave each element where an axis says. What the same ops make in several places
(levels of a pyramid, steps, heads) is one part.
"""

import dataclasses
import weakref
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import with_input_shapes
from tensortriage.model.shape_inference.value_specs import value_specs

_IN_ORDER = frozenset({
    "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Cast", "QuantizeLinear", "DequantizeLinear",
})  # fmt: skip
"""Operators whose result has the elements of the first operand in their order."""
_MOVES = _IN_ORDER | {"Transpose", "Slice"}
_SCALES = frozenset({"Add", "Div", "Mul", "Sub"})
"""Operators that leave each element of any operand where it is, as where boxes become pixels of an image."""
_COMPOSES = {"Concat": 2, "ScatterND": 1, "Pad": 1}
"""Operators that put values to others, and how many of their operands a graph has to make at least for that."""
_NOBODYS = -1
_DEPTH = 12
"""So many operators tell what makes a value, if none of them is a product."""

Shape = tuple[int, ...]


@frozen_dataclass(eq=False)
class OutputPart:
    """One part of an output.

    Attributes:
        output: The output.
        value: The value of the graph that it is, the first of several.
        composer: The node that puts it to others.
        where: Which elements of the output; a bool for each.
    """

    output: str
    value: str
    composer: Node
    where: np.ndarray

    @property
    def name(self) -> str:
        """Its display name: the output with the value that it is in brackets."""
        return f"{self.output}[{self.value}]"

    def of(self, output: np.ndarray) -> np.ndarray:
        """Return its elements of an array of the output, as a vector."""
        elements: np.ndarray = output[self.where]
        return elements


def with_parts(outputs: Mapping[str, np.ndarray], parts: Sequence[OutputPart]) -> dict[str, np.ndarray]:
    """Return outputs with their parts, by the names of these; none of an output of another shape."""
    found = dict(outputs)
    for part in parts:
        if part.output in outputs and np.shape(outputs[part.output]) == part.where.shape:
            found[part.name] = part.of(np.asarray(outputs[part.output]))
    return found


def whole(names: Sequence[str], parts: Sequence[OutputPart]) -> list[str]:
    """Return names of values, with the output in place of each part of it."""
    outputs = {part.name: part.output for part in parts}
    return list(dict.fromkeys(outputs.get(name, name) for name in names))


_KNOWN: weakref.WeakKeyDictionary[Model, dict[object, tuple[OutputPart, ...]]] = weakref.WeakKeyDictionary()


def output_parts(model: Model, inputs: Mapping[str, np.ndarray]) -> tuple[OutputPart, ...]:
    """Return the parts of every output that is composed of at least two, in order.

    Args:
        model: The model.
        inputs: Arrays of the shapes that it is run on.
    """
    ends = [spec.name for spec in model.outputs if way_to_composer(model.graph, spec.name)]
    if not ends:
        return ()
    shapes = {spec.name: np.shape(inputs[spec.name]) for spec in model.inputs if spec.name in inputs}
    known, key = _KNOWN.setdefault(model, {}), tuple(shapes.items())
    if key not in known:
        specs = value_specs(with_input_shapes(model, shapes), refine=True)
        sizes = {name: spec.sizes for name, spec in specs.items() if spec.is_sized}
        known[key] = tuple(part for name in ends for part in _Reader(model.graph, sizes).parts(name))
    return known[key]


def way_to_composer(graph: Graph, value: str) -> list[Node]:
    """Return the node that puts a value together, and the nodes between, in order; nothing where none does."""
    return _way(graph, value, {})


def _way(graph: Graph, value: str, known: dict[str, list[Node]]) -> list[Node]:
    node = graph.producer(value)
    if node is None:
        return []
    if node.op_type in _COMPOSES:
        made = [name for name in node.inputs if graph.producer(name) is not None and name not in graph.constants]
        return [node] if len(made) >= _COMPOSES[node.op_type] else []
    if value not in known:
        sources = node.inputs if node.op_type in _SCALES else node.inputs[:1] if node.op_type in _MOVES else ()
        ways = (_way(graph, name, known) for name in sources if name)
        found = next(filter(None, ways), [])
        known[value] = [*found, node] if found else []
    return known[value]


@dataclasses.dataclass(slots=True)
class _Reader:
    """Reads off a graph which elements are whose: an array of the shape of a value, with a number for each part."""

    graph: Graph
    shapes: Mapping[str, Shape]
    found: list[tuple[str, Node]] = dataclasses.field(default_factory=list)
    kinds: dict[object, int] = dataclasses.field(default_factory=dict)

    def parts(self, output: str) -> list[OutputPart]:
        way = way_to_composer(self.graph, output)
        try:
            owners = self.owners(output, way[0], None)
        except (KeyError, ValueError, IndexError, TypeError, UsageError):  # a shape or an index that is not known
            return []
        numbers = [number for number in np.unique(owners).tolist() if number != _NOBODYS]
        found = ((*self.found[number], owners == number) for number in numbers)
        parts = [OutputPart(output, value, composer, where) for value, composer, where in found]
        return parts if len(parts) > 1 else []

    def owners(self, value: str, composer: Node, place: tuple[int, int] | None) -> np.ndarray:
        """Return whose the elements of a value are, that a node puts to others: along which axis, and as which."""
        node, shape = self.graph.producer(value), self.shapes[value]
        if node is None or value in self.graph.constants:
            return np.full(shape, _NOBODYS)
        if not way_to_composer(self.graph, value):
            return np.full(shape, self.number(value, composer, place))
        if node.op_type in _SCALES:
            return self.overlaid(node, composer, shape)
        if node.op_type == "Concat":
            along = _integer(node, "axis") % len(shape)
            each = enumerate(node.inputs)
            return np.concatenate([self.owners(name, node, (along, number)) for number, name in each], along)
        first = self.owners(node.inputs[0], node if node.op_type == "ScatterND" else composer, None)
        if node.op_type == "ScatterND":
            first, indices = first.copy(), self.graph.weight(node.inputs[1])
            first[tuple(np.moveaxis(indices, -1, 0))] = self.owners(node.inputs[2], node, None)
            return first
        if node.op_type == "Pad":
            before, after = np.reshape(self.operand(node, 1, "pads"), (2, -1))
            return np.pad(first, list(zip(before, after, strict=True)), constant_values=_NOBODYS)
        if node.op_type == "Transpose":
            perm = node.attributes.get("perm")
            return first.transpose(perm if isinstance(perm, tuple) else None)
        if node.op_type == "Slice":
            return first[self.slices(node, first.ndim)].reshape(shape)
        return first.reshape(shape)

    def overlaid(self, node: Node, composer: Node, shape: Shape) -> np.ndarray:
        """Return whose the elements of a sum or product are: of one operand, or of those that are padded."""
        made = [name for name in node.inputs if way_to_composer(self.graph, name)]
        first, *others = (np.broadcast_to(self.owners(name, composer, None), shape) for name in made)
        for other in others:
            first = np.where(first == _NOBODYS, other, np.where(other == _NOBODYS, first, _NOBODYS))
        return first

    def operand(self, node: Node, index: int, attribute: str) -> list[int]:
        """Return integers of a constant operand, or of an attribute in older opsets; none where they are left out."""
        if isinstance(given := node.attributes.get(attribute), tuple):
            return [int(number) for number in given]
        name = node.inputs[index] if len(node.inputs) > index else ""
        return [int(number) for number in self.graph.weight(name).ravel()] if name else []

    def slices(self, node: Node, rank: int) -> tuple[slice, ...]:
        starts, ends, axes, steps = (
            self.operand(node, index, word) for index, word in enumerate(("starts", "ends", "axes", "steps"), 1)
        )
        found = [slice(None)] * rank
        for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
            step = steps[index] if steps else 1
            found[axes[index] if axes else index] = slice(start, end if step > 0 or end >= -rank else None, step)
        return tuple(found)

    def number(self, value: str, composer: Node, place: tuple[int, int] | None) -> int:
        """Return the number of the part that a value is, or belongs to."""
        while (node := self.graph.producer(value)) is not None and node.op_type in _IN_ORDER:
            if not node.inputs[0] or self.graph.producer(node.inputs[0]) is None:
                break
            value, place = node.inputs[0], place if node.op_type in {"Identity", "Cast"} else None
        self.found.append((value, composer))
        return self.kinds.setdefault(self.kind(value, place), len(self.found) - 1)

    def kind(self, value: str, place: tuple[int, int] | None) -> object:
        """Return the source of a value: operators back to a product, and how many channels that has.

        What products put to each other along their channels are different things, however alike.
        """
        chain: list[object] = []
        start = self.shapes[value]
        while (node := self.graph.producer(value)) is not None and len(chain) < _DEPTH:
            chain.append(node.op_type)
            if any(word in node.op_type for word in ("Conv", "Gemm", "MatMul")):
                shape = self.shapes[node.outputs[0]]
                channels = 1 if "Conv" in node.op_type else len(shape) - 1
                if place is not None and place[0] == channels and start[:channels] == shape[:channels]:
                    chain.append(place)
                return (*chain, shape[channels])
            value = next((name for name in node.uses if name not in self.graph.constants), "")
        return tuple(chain)


def _integer(node: Node, attribute: str) -> int:
    value = node.attributes[attribute]
    assert isinstance(value, int)
    return value
