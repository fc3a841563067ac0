"""Does a file prepare its input itself, although the model gets prepared input?

Converters and PrePostProcessor put means, deviations and the order of channels into a file, as operators before the
first layer, or into its weights. Both are read out of the file, and tried: the reference on inputs that were changed
so must give the file's outputs.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tensortriage.diagnose.sdk import (
    OBSERVED,
    Conclusion,
    Culprit,
    EngineError,
    Evidence,
    Graph,
    Investigation,
    Node,
    VerdictKind,
    error_of,
    error_size,
    is_minor,
    measure,
    rung,
)

QUESTION = "does the file prepare its input itself?"
ALIKE = 0.1
"""Share of a weight's channel that may be left when it is another's times a number: rounding to few bits."""
SAME = 0.01
"""Relative difference up to which a factor is 1."""
_PASSES = frozenset({"Cast", "DequantizeLinear", "Identity", "QuantizeLinear"})


@dataclasses.dataclass(frozen=True, slots=True)
class Preparation:
    """The preparation of an input, by channel.

    Attributes:
        order: Which channel of the input each is.
        gain: Factor.
        shift: Offset, added after the multiplication.
    """

    order: np.ndarray
    gain: np.ndarray
    shift: np.ndarray

    @property
    def words(self) -> str:
        """The change, as a clause; empty for none."""
        found = []
        if self.order.tolist() != sorted(self.order.tolist()):
            found.append(f"with its channels in the order {', '.join(map(str, self.order.tolist()))}")
        means = -self.shift / self.gain
        if np.abs(means).max() > 0.0:
            found.append(f"minus {_listed(means)}")
        if np.abs(self.gain - 1.0).max() > SAME:
            found.append(f"divided by {_listed(1 / self.gain)}")
        return ", ".join(found)

    def of(self, array: np.ndarray) -> np.ndarray:
        """Return an input so prepared."""
        sizes = (-1, *[1] * (array.ndim - 2))
        moved = array[:, self.order].astype(np.float64) * self.gain.reshape(sizes) + self.shift.reshape(sizes)
        return np.asarray(moved.astype(array.dtype))


@rung(
    QUESTION,
    cost="two runs of the reference",
    ends=(VerdictKind.MODEL_CHANGED,),
    after="which data layout does the given file expect?",
)
def prepared_input(inv: Investigation, _: Evidence) -> Conclusion | None:
    """Try the file's preparation of an image on the reference."""
    file, feed = inv.question.target_model, inv.question.feeds[0]
    if file is None:
        return None
    known = {spec.name: preparation(file.graph, inv.model.graph, spec.name) for spec in inv.model.inputs}
    prepared = {name: each for name, each in known.items() if each is not None and each.words and name in feed.tensors}
    if not prepared:
        return None
    moved = {name: each.of(feed.tensors[name]) for name, each in prepared.items()}
    try:
        found = inv.lab.outputs(inv.question.reference, file, feed)
        golden = inv.golden.outputs(feed)
        fed = dataclasses.replace(feed, name=f"{feed.name}, prepared", tensors={**feed.tensors, **moved})
        explained = inv.lab.outputs(inv.question.reference, inv.model, fed)
    except EngineError as error:
        inv.record.answered(QUESTION, f"unknown: {error.message}")
        return None
    before, after = (
        max(error_of(measure(np.asarray(side[name]), array)) for name, array in found.items())
        for side in (golden, explained)
    )
    what = "; ".join(f"it takes '{name}' {each.words}" for name, each in prepared.items())
    if not is_minor(after, before):
        inv.record.answered(QUESTION, f"no: {what}, which does not explain its outputs", before=before, after=after)
        return None
    inv.record.answered(QUESTION, f"yes: {what}", before=before, after=after)
    name = next(iter(prepared))
    first = inv.model.graph.consumers(name)[0]
    return Conclusion(
        VerdictKind.MODEL_CHANGED,
        OBSERVED,
        f"the file prepares its input itself: {what}; on that the reference gives its outputs up to "
        f"{error_size(after)}, else they differ by {error_size(before)}; feed it unprepared data, or convert "
        "the model without means, scales and reversed channels",
        culprits=[Culprit(first.name, first.op_type, name, reason=f"is fed '{name}' {prepared[name].words}")],
    )


def preparation(file: Graph, model: Graph, name: str) -> Preparation | None:
    """Return the preparation of a model's input in a file; None if unknown."""
    readers = model.consumers(name)
    if len(readers) != 1 or len(file.consumers(name)) != 1 or readers[0].op_type != "Conv":
        return None
    weight = _numbers(model, readers[0].inputs[1])
    if weight is None:
        return None
    count = weight.shape[1]
    state, axis, value = Preparation(np.arange(count), np.ones(count), np.zeros(count)), 1, name
    while True:
        users = file.consumers(value)
        if len(users) != 1:
            return None
        node = users[0]
        if node.op_type == "Conv":
            return _joined(state, _numbers(file, node.inputs[1]), weight)
        step = _step(file, node, value, state, axis)
        if step is None:
            return None
        (state, axis), value = step, node.outputs[0]


def _step(file: Graph, node: Node, value: str, state: Preparation, axis: int) -> tuple[Preparation, int] | None:
    """Return the preparation up to a node; None for a node that is not part of one."""
    if node.op_type in _PASSES:
        return state, axis
    if node.op_type == "Transpose":
        perm = node.attributes.get("perm")
        return (state, perm.index(axis)) if isinstance(perm, tuple) else None
    if node.op_type == "Gather" and node.attributes.get("axis", 0) == axis and node.inputs[0] == value:
        order = _numbers(file, node.inputs[1])
        if order is None or order.ndim != 1 or order.size != state.order.size:
            return None
        chosen = order.astype(int)
        return Preparation(state.order[chosen], state.gain[chosen], state.shift[chosen]), axis
    if node.op_type not in ("Add", "Div", "Mul", "Sub") or node.inputs[0] != value:
        return None
    array = _numbers(file, node.inputs[1])
    if array is None or array.size not in (1, state.order.size):
        return None
    by = np.broadcast_to(array.astype(np.float64).reshape(-1), state.order.shape)
    factor = {"Mul": by, "Div": 1 / by}.get(node.op_type, np.ones_like(by))
    added = {"Add": by, "Sub": -by}.get(node.op_type, np.zeros_like(by))
    return Preparation(state.order, state.gain * factor, state.shift * factor + added), axis


def _joined(state: Preparation, found: np.ndarray | None, weight: np.ndarray) -> Preparation | None:
    """Return a preparation with the part in the first weight: each channel is one of the model's, scaled."""
    if found is None or found.shape != weight.shape:
        return None
    own, theirs = (each.astype(np.float64).swapaxes(0, 1).reshape(each.shape[1], -1) for each in (found, weight))
    factors = (own @ theirs.T) / np.maximum((theirs**2).sum(1), 1e-300)
    left = (
        np.linalg.norm(own[:, None] - factors[..., None] * theirs, axis=-1)
        / np.maximum(np.linalg.norm(own, axis=1), 1e-300)[:, None]
    )
    places = left.argmin(1)
    if left.min(1).max() > ALIKE or sorted(places.tolist()) != list(range(len(own))):
        return None
    scales, back = factors[np.arange(len(own)), places], np.argsort(places)
    scales = np.where(np.abs(scales - 1.0) <= SAME, 1.0, scales)
    return Preparation(state.order[back], (state.gain * scales)[back], (state.shift * scales)[back])


def _numbers(graph: Graph, name: str) -> np.ndarray | None:
    """Return a constant, also behind a Cast or quantizers; None for other values."""
    if name in graph.constants:
        return graph.weight(name)
    node = graph.producer(name)
    if node is None or node.op_type not in _PASSES:
        return None
    array = _numbers(graph, node.inputs[0])
    if array is None or node.op_type != "DequantizeLinear":
        return array
    scale = _numbers(graph, node.inputs[1])
    zero = _numbers(graph, node.inputs[2]) if len(node.inputs) > 2 else None
    stored = graph.producer(node.inputs[0])
    if scale is None or (stored is not None and stored.op_type == "QuantizeLinear"):
        return array
    axis = node.attributes.get("axis", 1)
    shape = [1] * array.ndim
    if scale.size > 1 and isinstance(axis, int):
        shape[axis] = -1
    moved = array.astype(np.float64) - (
        0 if zero is None else zero.astype(np.float64).reshape(shape if zero.size > 1 else ())
    )
    return np.asarray(moved * scale.reshape(shape if scale.size > 1 else ()))


def _listed(numbers: Sequence[float] | np.ndarray) -> str:
    """Return numbers in brackets, one where all are alike."""
    shown = [f"{number:.6g}" for number in numbers]
    return shown[0] if len(set(shown)) == 1 else f"({', '.join(shown)})"
