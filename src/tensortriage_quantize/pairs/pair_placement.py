"""Places of quantizer pairs in a float model, for the engine that will run it.

The heavy operators read quantized operands. Where an engine's integer kernel makes nothing but integers (a Conv of ONNX
Runtime's), its result gets a pair too, behind the Relu or Clip that alone reads it: a quantizer whose lowest number
stands for 0 is that Relu. Operators between two such kernels that have an integer kernel themselves (a residual Add,
pooling, Concat) are quantized with them, so that whole runs of operators stay in integers.
"""

import dataclasses
from collections.abc import Collection, Mapping

from tensortriage.api import Model
from tensortriage.precision.sdk import DType, Graph, Node, ValueSpec
from tensortriage_quantize.pairs.engine_styles import EngineStyle, PairPlaces

_MOVERS = frozenset({"MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"})
"""Operators whose results are numbers of their first operand: both have one scale, or the numbers would be rounded."""

_JOINERS = frozenset({"Add", "Mul", "Concat", "AveragePool", "GlobalAveragePool", "Resize"})
"""Operators that compute, with kernels for integers."""

_ABSORBED = frozenset({"Relu", "Clip"})
"""Operators that a quantizer replaces when its range ends where theirs does."""

_REQUANTIZED = frozenset({"Conv", "ConvTranspose", "Gemm"})
"""Products whose float weights ONNX Runtime quantizes behind a dequantizer."""

_FIRST_ONLY = frozenset({"Clip", "Resize", "Pad", "Dropout"})
"""Operators whose further operands are settings."""

_RIGHT = 1
"""Place of the second operand of a product; that of the weight, too."""

_DATA: Mapping[str, tuple[int, ...]] = {
    "Conv": (0, 1), "ConvTranspose": (0, 1), "Gemm": (0, 1), "MatMul": (0, 1), "Add": (0, 1), "Mul": (0, 1),
}  # fmt: skip
"""Places of operands that are quantized; all of a Concat's, the first of the others."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedPair:
    """One pair at an activation.

    Attributes:
        value: The quantized value.
        readers: The operands that read it quantized, as name of the node and index; None for all readers, the model's
            outputs included.
        like: The value that it shares scale and zero point with; its own name where it has its own.
        right: Whether it is the second operand of products, which may want another type.
    """

    value: str
    readers: frozenset[tuple[str, int]] | None
    like: str
    right: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedWeight:
    """One operand that is a weight.

    Attributes:
        value: The weight.
        node: The node that reads it.
        place: Index of the operand.
        axis: Axis of its scales; None for one scale.
        activation: The other operand.
        bias: The bias of the product, where it has a constant one of one axis; empty without.
        adds: The node that adds the bias, and the operand's index: the node itself, or an Add behind a MatMul.
    """

    value: str
    node: str
    place: int
    axis: int | None
    activation: str
    bias: str
    adds: tuple[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class PairPlan:
    """Places of the pairs of a model.

    Attributes:
        lowered: Nodes that read quantized operands.
        pairs: Pairs at activations, each value and kind of operand once.
    """

    lowered: frozenset[str]
    pairs: tuple[PlannedPair, ...]
    weights: tuple[PlannedWeight, ...]


def heavy_nodes(
    graph: Graph, style: EngineStyle, op_types: Collection[str], specs: Mapping[str, ValueSpec]
) -> tuple[str, ...]:
    """Return the nodes whose operands an engine can read quantized, in topological order.

    Args:
        graph: A graph.
        style: The engine's requirements.
        op_types: Operators that may be quantized.
        specs: Types of its values, as far as they are known.
    """
    wanted = style.heavy.intersection(op_types)
    return tuple(
        node.name
        for node in graph.nodes
        if node.op_type in wanted
        and node.domain in ("", "ai.onnx")
        and all(_is_float(graph, specs, node.inputs[place]) for place in _data(node))
        and not all(node.inputs[place] in graph.constants for place in _data(node))
        and (style.products or any(node.inputs[place] in graph.constants for place in _data(node)))
        and (node.op_type not in ("Conv", "ConvTranspose") or node.inputs[_RIGHT] in graph.constants)
    )


def place_pairs(
    model: Model, style: EngineStyle, heavy: Collection[str], specs: Mapping[str, ValueSpec], kept: Collection[str] = ()
) -> PairPlan:
    """Return the places of the pairs of a model.

    Args:
        model: The float model.
        style: The engine's requirements.
        heavy: The nodes of `heavy_nodes` that are quantized.
        specs: Types of its values, as far as they are known.
        kept: Nodes that stay float in any case.
    """
    return _Placing(model, style, frozenset(heavy), specs, frozenset(kept)).plan()


def feeding(graph: Graph, nodes: Collection[str]) -> frozenset[str]:
    """Return the nodes whose results reach another given node through operators that can stay in integers."""
    found: dict[str, bool] = {}
    for node in reversed(graph.nodes):  # whether a node is one of them, or hands integers on to one
        reaches = any(found.get(user.name, False) for value in node.outputs for user in graph.consumers(value))
        hands_on = node.op_type in _MOVERS | _JOINERS | _ABSORBED and reaches
        found[node.name] = node.name in nodes or hands_on
    return frozenset(
        name for name in nodes
        if any(found[user.name] for value in graph.node(name).outputs for user in graph.consumers(value))
    )  # fmt: skip


class _Placing:
    """One placement in progress."""

    def __init__(
        self,
        model: Model,
        style: EngineStyle,
        heavy: frozenset[str],
        specs: Mapping[str, ValueSpec],
        kept: frozenset[str],
    ) -> None:
        self._graph, self._style, self._heavy, self._specs, self._kept = model.graph, style, heavy, specs, kept
        self._inputs = tuple(spec.name for spec in model.inputs)
        self._outputs = frozenset(spec.name for spec in model.outputs)
        self._lowered = set(heavy)
        if style.places is PairPlaces.RUNS:
            self._lowered |= self._between()
        elif style.places is PairPlaces.EVERYTHING:
            self._lowered |= {node.name for node in model.graph.nodes if self._able(node)}

    def plan(self) -> PairPlan:
        """Return the plan for lowered nodes."""
        pairs: dict[tuple[str, bool], PlannedPair] = {}
        everything = self._style.places is PairPlaces.EVERYTHING
        constants = [name for name in self._graph.constants if everything]
        made = [name for name in self._graph.values if name not in self._graph.constants]
        for value in (*self._inputs, *constants, *made):
            for pair in self._pairs_of(value):
                like = self._like(pair.value)
                pairs[pair.value, pair.right] = dataclasses.replace(pair, like=like)
        weights = tuple(
            self._weight(node) for node in self._graph.nodes
            if node.name in self._heavy and node.inputs[_RIGHT] in self._graph.constants
        )  # fmt: skip
        return PairPlan(frozenset(self._lowered), tuple(pairs.values()), weights)

    def _pairs_of(self, value: str) -> list[PlannedPair]:
        if not _is_float(self._graph, self._specs, value):
            return []
        if self._is_closed(value):
            return [PlannedPair(value, None, value)]
        found = {False: set[tuple[str, int]](), True: set[tuple[str, int]]()}
        for node in self._graph.consumers(value):
            if node.name not in self._lowered:
                continue
            for place in self._places(node):
                if node.inputs[place] == value:
                    right = place == _RIGHT and node.name in self._heavy
                    found[right and self._style.right is not self._style.activation].add((node.name, place))
        return [PlannedPair(value, frozenset(readers), value, right) for right, readers in found.items() if readers]

    def _reaches_float(self, node: Node) -> bool:
        """Whether a node is a product that stays float, or hands its numbers on to one."""
        if node.op_type in _REQUANTIZED:
            return node.name not in self._lowered
        users = (user for value in node.outputs for user in self._graph.consumers(value))
        return node.op_type in _MOVERS and any(map(self._reaches_float, users))

    def _places(self, node: Node) -> tuple[int, ...]:
        """Return the places of the operands that a lowered node reads quantized; weights of products are not theirs."""
        if node.name in self._heavy:
            return tuple(place for place in _data(node) if node.inputs[place] not in self._graph.constants)
        if self._style.places is not PairPlaces.EVERYTHING or node.op_type in _FIRST_ONLY:
            return _data(node)
        return tuple(place for place, value in enumerate(node.inputs) if _is_float(self._graph, self._specs, value))

    def _is_closed(self, value: str) -> bool:
        """Whether a kernel makes a value that makes integers only: none does where a product reads it that stays float.

        ONNX Runtime (WeightBiasQuantization, 1.31) would put the float weights of that Conv or Gemm in 8 bits again,
        with one scale for all channels: it does so behind a dequantizer, and moves dequantizers there (QDQPropagation).
        """
        maker = self._graph.producer(value)
        if (
            maker is None
            or value in self._graph.constants
            or any(map(self._reaches_float, self._graph.consumers(value)))
        ):
            return False
        if maker.op_type in _ABSORBED and (before := self._absorbed_by(maker)) is not None:
            maker = before
        elif self._absorber(maker) is not None:
            return False
        return maker.name in self._lowered and (maker.op_type in self._style.closed or maker.name not in self._heavy)

    def _absorber(self, node: Node) -> Node | None:
        """Return the Relu or Clip that a quantizer behind a node takes over; None without one."""
        users = self._graph.consumers(node.outputs[0])
        if len(users) != 1 or node.outputs[0] in self._outputs or users[0].op_type not in _ABSORBED:
            return None
        return users[0] if users[0].name not in self._kept and users[0].inputs[0] == node.outputs[0] else None

    def _absorbed_by(self, activation: Node) -> Node | None:
        """Return the node behind whose kernel a Relu or Clip vanishes; None where it does not."""
        maker = self._graph.producer(activation.inputs[0])
        if maker is None or maker.name not in self._lowered or self._absorber(maker) is None:
            return None
        makes_integers = maker.op_type in self._style.closed or maker.name not in self._heavy
        return maker if makes_integers and maker.op_type not in _MOVERS else None

    def _like(self, value: str) -> str:
        """Return the value with the same scale as another: through operators that only move numbers."""
        maker = self._graph.producer(value)
        while maker is not None and maker.op_type in _MOVERS and maker.name in self._lowered:
            value = maker.inputs[0]
            maker = self._graph.producer(value)
        return value

    def _weight(self, node: Node) -> PlannedWeight:
        adds, bias = self._bias(node) if self._style.bias else (("", 0), "")
        return PlannedWeight(node.inputs[_RIGHT], node.name, _RIGHT, self._axis(node), node.inputs[0], bias, adds)

    def _bias(self, node: Node) -> tuple[tuple[str, int], str]:
        """Return the node that adds a constant bias of one axis to a product, the operand's index, and the bias."""
        user: Node = node
        places: tuple[int, ...] = (2,)
        if node.op_type == "MatMul":
            users = self._graph.consumers(node.outputs[0])
            user, places = (users[0], (0, 1)) if len(users) == 1 and users[0].op_type == "Add" else (node, ())
        if node.op_type == "Gemm" and (node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)) != (1, 1):
            return ("", 0), ""
        weight = self._graph.constants[node.inputs[_RIGHT]].shape or ()
        axis = self._axis(node)
        for place in places:
            known = self._graph.constants.get(user.inputs[place]) if place < len(user.inputs) else None
            if known is not None and known.shape == (weight[axis] if axis is not None else -1,):
                return (user.name, place), user.inputs[place]
        return ("", 0), ""

    def _axis(self, node: Node) -> int | None:
        rank = len(self._graph.constants[node.inputs[_RIGHT]].shape or ())
        if node.op_type == "Conv":
            return 0
        if node.op_type == "ConvTranspose":
            return 1 if node.attributes.get("group", 1) == 1 else None
        if node.op_type == "Gemm":
            return 0 if node.attributes.get("transB", 0) else 1
        return 1 if rank == 2 else None

    def _able(self, node: Node) -> bool:
        """Whether an engine that quantizes everything quantizes a node."""
        floats = [value for value in (*node.inputs, *node.outputs) if _is_float(self._graph, self._specs, value)]
        return node.name not in self._kept and bool(floats) and node.op_type not in ("Constant", "Cast")

    def _between(self) -> set[str]:
        """Return the nodes between integer kernels that have one themselves."""
        nodes = [
            node for node in self._graph.nodes
            if node.op_type in _MOVERS | _JOINERS and node.name not in self._kept and self._is_plain(node)
        ]  # fmt: skip
        found = {node.name for node in nodes}
        self._lowered = set(self._heavy) | found
        while True:
            dropped = {node.name for node in nodes if node.name in found and not self._stays(node)}
            if not dropped:
                return found
            found -= dropped
            self._lowered -= dropped

    def _is_plain(self, node: Node) -> bool:
        values = [node.inputs[place] for place in _data(node)]
        return all(
            _is_float(self._graph, self._specs, value) and value not in self._graph.constants for value in values
        )

    def _stays(self, node: Node) -> bool:
        """Whether a node reads only integers, and its result is read in integers."""
        if self._reaches_float(node) or not all(self._is_quantized(node.inputs[place]) for place in _data(node)):
            return False
        made = self._absorber(node)
        users = self._graph.consumers(made.outputs[0] if made is not None else node.outputs[0])
        return any(user.name in self._lowered for user in users)

    def _is_quantized(self, value: str) -> bool:
        """Whether an integer kernel makes a value, or one that cannot do without reads it."""
        if self._is_closed(value):
            return True
        users = self._graph.consumers(value)
        return any(u.name in self._heavy and u.op_type in self._style.closed and u.inputs[0] == value for u in users)


def _data(node: Node) -> tuple[int, ...]:
    if node.op_type == "Concat":
        return tuple(range(len(node.inputs)))
    return _DATA.get(node.op_type, (0,) if node.inputs and node.inputs[0] else ())


def _is_float(graph: Graph, specs: Mapping[str, ValueSpec], value: str) -> bool:
    spec = graph.constants.get(value) or specs.get(value)
    return spec is not None and spec.dtype is DType.FLOAT
