"""The first departure of a file from its network, found by the numbers of its tensors and not by names.

Both are evaluated, the file as it was before it was rounded, and tensors are recognised by their values: an optimizer
that fused, split, renamed or transposed leaves most of them as they were. A recognised tensor is right when it is as
near as other roundings of the file's constants leave it; a tensor that resembles nothing is right when a right one is
made of it. The op to look at is the first that makes a wrong result of right operands.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.alignment.tensor_fingerprint import Fingerprint, fingerprint
from tensortriage.compare.alignment.value_matching import ValueMatch, match
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import is_lost
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.elements import MASKED_APART
from tensortriage.envelope.explanations import SIGNED, UNROUNDED
from tensortriage.envelope.floors import fp32_floors
from tensortriage.envelope.limits import of_file
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import is_quantizer, quantizers
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.runs.lab import FLOAT64
from tensortriage.values.store import TensorStore
from tensortriage.values.text import magnitude

_MOVERS = frozenset({"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Concat", "Split", "Slice"})
"""Operators that put numbers elsewhere."""
_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN", "Einsum"})
"""Operators that are written in many ways, and never left out."""
_QUANTIZED = ("DynamicQuantize", "QLinear", "QGemm", "MatMulNBits")
"""How the names of operators on integers begin that stand for one of the standard."""
_DRAWS = ("1", "2")
_LIMITERS = frozenset({"Clip", "Relu"})
"""Operators that quantizers of models leave to the range of the pair behind them, where it ends with theirs."""


@frozen_dataclass
class Departure:
    """An op with the network's operands and another result.

    Attributes:
        node: The op, of the file; of the network where it is missing in the file.
        value: Its result.
        missing: Whether it is an op of the network that the file lacks.
        words: Its behaviour, as the rest of a sentence that begins with the op.
        error: How far its result is from the tensor of the network that it stands for; None where there is none.
    """

    node: Node
    value: str
    missing: bool
    words: str
    error: float | None = None


def departures(inv: Investigation, file: Model, feed: Feed, unrounded: EngineSpec) -> list[Departure]:
    """Return the ops at which a file departs from the network, in topological order.

    Args:
        inv: The investigation, of the network.
        file: The file, its quantizers written as pairs.
        feed: Inputs of the network.
        unrounded: How the file is evaluated.

    Raises:
        EngineError: When one of both cannot be evaluated.
        DataError: When the feed does not fit the file.
    """
    fed = check_feed(feed, file.inputs, casting=Casting.ROUND)
    golden = inv.lab.values(FLOAT64, inv.model, feed, inv.question.values)
    known = {name: fingerprint(np.asarray(golden[name])) for name in golden.names()}
    known |= {name: fingerprint(array) for name, array in feed.tensors.items()}
    steps = {name for node in file.graph.nodes if is_quantizer(node, "QuantizeLinear") for name in node.outputs}
    values = [name for name in markable(file) if name not in steps]
    found = {name: fingerprint(array) for name, array in inv.lab.stream(unrounded, file, fed, values, specs={})}
    matches = match(known, found)
    drawn = [unrounded.with_options({**unrounded.options, "draw": draw}) for draw in _DRAWS]
    specs = (unrounded, *drawn, *([SIGNED] if unrounded == UNROUNDED else []))  # a little may be cut off on purpose
    streams = zip(*(inv.lab.stream(spec, file, fed, values, specs={}) for spec in specs), strict=True)
    floors = fp32_floors(inv.setting(feed), inv.question.values)
    seen = _Seen(matches, found, feed, golden, floors)
    for (name, array), *others in streams:
        seen.look(name, array, [other for _, other in others])
    return _Walk(inv.model.graph, file, seen).departures()


class _Seen:
    """Which tensors of the file are right, and which of the network's they are.

    Attributes:
        right: The right ones.
        place: The tensor of the network, in the order of its elements where there is one.
        errors: How far recognised tensors are off.
        moved: Right ones whose elements are in another order than anywhere in the network.
    """

    def __init__(
        self,
        matches: Mapping[str, ValueMatch],
        found: Mapping[str, Fingerprint],
        feed: Feed,
        golden: TensorStore,
        floors: Mapping[str, float],
    ) -> None:
        self.found, self.matched = found, matches
        self._feed, self._golden, self._floors = feed, golden, floors
        self.right: set[str] = set()
        self.moved: set[str] = set()
        self.place: dict[str, str] = {}
        self.errors: dict[str, float] = {}

    def look(self, name: str, array: np.ndarray, draws: Sequence[np.ndarray]) -> None:
        """Judge one tensor of the file by the tensor that it is recognised as, and by the distance of its draws."""
        recognised = self.matched.get(name)
        names = (recognised.reference, *recognised.aliases) if recognised is not None else ()
        if name in self._golden and name not in names:  # a name proves nothing: numbers decide
            names = (*names, name)
        if not names:
            return
        flat = np.asarray(array, np.float64).ravel()
        noise = max((_distance(flat, np.asarray(draw, np.float64).ravel()) for draw in draws), default=0.0)
        candidates = list(self._candidates(names, flat))
        if not candidates:
            return
        error, place, moved = min(candidates)
        limit = of_file(noise, self._floors.get(place, 0.0), flat.size)
        self.place[name], self.errors[name] = place, error
        if error <= limit:
            self.right.add(name)
            if moved:
                self.moved.add(name)

    def _candidates(self, names: Sequence[str], flat: np.ndarray) -> Iterator[tuple[float, str, bool]]:
        """Yield how far each tensor that it may be is, and whether that is in another order; the same order first."""
        in_order = []
        arrays = {name: self._array(name) for name in names}
        for name, array in arrays.items():
            if array.size == flat.size:
                in_order.append((_distance(array, flat), name, False))
        yield from in_order
        if in_order and is_lost(min(in_order)[0]):
            for name, array in arrays.items():
                if array.size == flat.size:
                    yield _distance(np.sort(array), np.sort(flat)), name, True

    def size(self, name: str) -> int:
        """Return how many elements a computed tensor of the network has; 0 for constants."""
        if name in self._feed.tensors:
            return int(self._feed.tensors[name].size)
        return int(np.asarray(self._golden[name]).size) if name in self._golden else 0

    def _array(self, name: str) -> np.ndarray:
        array = self._feed.tensors[name] if name in self._feed.tensors else np.asarray(self._golden[name])
        return np.asarray(array, np.float64).ravel()


class _Walk:
    """From right tensors of the file to wrong ones."""

    def __init__(self, network: Graph, file: Model, seen: _Seen) -> None:
        self._network, self._graph, self._seen = network, file.graph, seen
        self._inputs = {spec.name for spec in file.inputs}
        self._outputs = {spec.name for spec in file.outputs}
        graph, moved = file.graph, set[str]()
        for node in graph.nodes:
            if node.op_type in _MOVERS or not moved.isdisjoint(node.uses):
                moved.update(seen.moved.intersection(node.outputs))
        seen.right -= seen.moved - moved  # sorted, the numbers of one distribution are alike by chance
        seen.moved = moved
        self._leads = set(seen.right)
        for node in reversed(graph.nodes):
            if not self._leads.isdisjoint(node.outputs):
                known = (name for name in node.uses if name not in seen.errors or name in seen.right)
                self._leads.update(known)

    def departures(self) -> list[Departure]:
        """Return where right tensors become wrong ones that reach an output."""
        seen, wrong, departed = self._seen, set[str](), []
        computed = set(self._inputs)
        for node in self._graph.nodes:
            if computed.isdisjoint(node.uses):  # of constants alone, such as a weight that is dequantized
                continue
            computed.update(node.outputs)
            made = [name for name in node.outputs if name in seen.found]
            if not wrong.isdisjoint(node.uses):
                wrong.update(name for name in node.outputs if name not in seen.right)
                continue
            for name in made:
                if name in seen.right or name in self._leads or not seen.found[name].information:
                    continue
                wrong.add(name)
                departed.append((node, name))
        return [self._told(node, name) for node, name in departed if self._reaches(name)]

    def _told(self, node: Node, value: str) -> Departure:
        """Return the fault at an op: an operand in another order, an op that is missing before it, or itself."""
        seen = self._seen
        operands = [name for name in node.uses if name in seen.place]
        for name in operands:
            mover = self._mover(name) if name in seen.moved else None
            if mover is not None:
                return Departure(mover, name, False, f"puts the elements of '{seen.place[name]}' into another order")
        for name in operands:
            if (lost := self._lost(node, seen.place[name])) is not None:
                words = f"is missing between '{lost.inputs[0]}' and '{node.name}'{self._left_to_range(lost, name)}"
                return Departure(lost, lost.outputs[0], True, words)
        of = f" of '{seen.place[operands[0]]}'" if operands else ""
        scale = seen.matched[value].scale if value in seen.matched else 1.0
        if scale != 1.0:
            return Departure(node, value, False, f"makes{of} the original's result, times {magnitude(scale)}")
        error = seen.errors.get(value)
        if error is not None:
            return Departure(node, value, False, f"makes another '{seen.place[value]}', from correct operands", error)
        return Departure(node, value, False, f"makes{of} a value that the original never has")

    def _mover(self, value: str) -> Node | None:
        """Return the op that put the elements of a value into an order that the network nowhere has."""
        found = None
        while value in self._seen.moved and (found := self._graph.producer(value)) is not None:
            if found.op_type not in _MOVERS:
                break
            value = found.inputs[0]
        return found

    def _lost(self, node: Node, place: str) -> Node | None:
        """Return the op of the network that alone reads a tensor, where the file reads it by an op of another kind."""
        if node.domain not in ("", "ai.onnx") and not node.op_type.startswith(_QUANTIZED):
            return None  # the fusing op is unknown
        readers = list(self._network.consumers(place))
        if len(readers) != 1 or readers[0].op_type == node.op_type or readers[0].op_type in _PRODUCTS:
            return None
        several = [name for name in readers[0].uses if self._seen.size(name) > 1]
        return readers[0] if several == [place] else None

    def _left_to_range(self, lost: Node, value: str) -> str:
        """Return that the range of the pair in place of a limiting op holds more than that lets through; else empty."""
        pair = next((pair for pair in quantizers(self._graph) if not pair.of_weight and pair.result == value), None)
        if pair is None or lost.op_type not in _LIMITERS:
            return ""
        return (
            f": the range of {pair.quantize} there holds numbers that {lost.op_type} cuts off. Cure: a range that ends "
            f"where {lost.op_type} does (of a Relu from 0 on, so not symmetric), or quantize a model that keeps it"
        )

    def _reaches(self, value: str) -> bool:
        """Return whether a wrong tensor reaches an output of the file through wrong ones."""
        open_values, known = [value], {value}
        while open_values:
            name = open_values.pop()
            if name in self._outputs:
                return True
            made = (made for node in self._graph.consumers(name) for made in node.outputs)
            fresh = {each for each in made if each not in known and each not in self._seen.right}
            known |= fresh
            open_values += fresh
        return False


def _distance(right: np.ndarray, other: np.ndarray) -> float:
    """Return the relative RMS error of a vector, masked scores left out: they hide all others."""
    sizes = np.abs(right)
    usual = float(np.median(sizes[sizes > 0])) if sizes.any() else 0.0
    if usual and float(sizes.max()) >= MASKED_APART * usual:
        seen = sizes < MASKED_APART * usual
        right, other = right[seen], other[seen]
    return float(error_of(measure(right, other)))
