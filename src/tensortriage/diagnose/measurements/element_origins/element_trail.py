"""The sources of a wrong element, followed back from op to op through the target's own run.

The source of an element is, for an element-wise operator, the operand elements that broadcasting pairs with it; for an
operator that moves data, the one that it moved; for all others every element. The trail follows only elements that
differ from the reference's by more than their own rounding, however small they are compared with their tensor.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.float64.kernels import ELEMENTWISE, Call, kernel_for
from tensortriage.envelope.elements import own_rounding
from tensortriage.errors import EngineError
from tensortriage.model.ir.graph import Node
from tensortriage.values.dtype import DType, Precision

MOST_NODES = 16
"""Ops to follow back: the causes of an element lie close before it."""

BROADCAST = ELEMENTWISE - {"BatchNormalization"} | {
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cast", "Ceil", "Cos", "Cosh", "Floor", "Identity", "Mod",
    "Round", "Sign", "Sin", "Sinh", "Tan",
}  # fmt: skip
"""Operators that pair the elements of their operands by broadcasting."""

_RESHAPED = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
_MOVED = frozenset({"Concat", "Expand", "Gather", "Slice", "Split", "Tile", "Transpose"})

Masks = Mapping[str, np.ndarray]
"""By value name, which elements count; each of the value's shape, of bool."""


def trail(inv: Investigation, evidence: Evidence, starts: Masks, seen: Mapping[str, np.ndarray]) -> Masks:
    """Return the wrong sources of given wrong elements, the starts included.

    Args:
        inv: The investigation.
        evidence: The evidence so far.
        starts: The wrong elements.
        seen: The target's values, see `before`; a value that is missing ends the trail.
    """
    golden = inv.golden.of(evidence.feed)
    masks = {name: np.asarray(mask) for name, mask in starts.items()}
    for node in reversed(inv.model.graph.nodes):
        for value in node.outputs:
            if value not in masks:
                continue
            operands = [known(inv, evidence, name) for name in node.inputs]
            for position, name in enumerate(node.inputs):
                if name not in seen or name not in golden or inv.model.graph.producer(name) is None:
                    continue
                different = differing(np.asarray(golden[name]), seen[name], inv.precision)
                if not different.any():
                    continue
                found = different & paired(node, position, masks[value], operands, value, opset=inv.model.opset)
                if found.any():
                    masks[name] = masks.get(name, np.zeros(found.shape, np.bool_)) | found
    return masks


def before(inv: Investigation, evidence: Evidence, starts: Sequence[Node]) -> dict[str, np.ndarray]:
    """Return results of given nodes and of those before them that differ at all, in one run of the whole target."""
    graph, figures = inv.model.graph, evidence.in_context or {}
    chosen, pending = dict.fromkeys(value for node in starts for value in node.outputs), list(starts)
    for node in pending:
        for name in node.uses:
            made = graph.producer(name)
            differs = name in figures and figures[name].mismatches > 0
            if made is not None and made not in pending and differs and len(pending) < MOST_NODES:
                pending.append(made)
        chosen.update(dict.fromkeys(name for name in node.uses if name in figures))
    wanted, specs = [name for name in inv.question.values if name in chosen], inv.golden.specs(evidence.feed)
    try:
        shown = inv.lab.values(inv.question.target, inv.model, evidence.feed, wanted, specs=specs)
        return {name: np.asarray(shown[name]) for name in shown.names()}
    except EngineError:
        return {}


def known(inv: Investigation, evidence: Evidence, name: str) -> np.ndarray | None:
    """Return an operand as the reference has it; None when it is omitted or not known."""
    golden = inv.golden.of(evidence.feed)
    if name in golden:
        return np.asarray(golden[name])
    if name in evidence.feed.tensors:
        return evidence.feed.tensors[name]
    return inv.model.graph.weight(name) if name in inv.model.graph.constants else None


def differing(reference: np.ndarray, target: np.ndarray, precision: Precision) -> np.ndarray:
    """Return a mask of where two tensors differ by more than an element's own rounding; all False for other types."""
    if reference.shape != target.shape or not DType.from_numpy(reference.dtype).is_float:
        return np.zeros(reference.shape, np.bool_)
    right, found = reference.astype(np.float64), target.astype(np.float64)
    limit = own_rounding(DType.from_numpy(reference.dtype), precision)
    with np.errstate(invalid="ignore"):
        near = np.abs(found - right) <= limit * np.abs(right)
    return np.asarray(~near & (right != found) & ~(np.isnan(right) & np.isnan(found)))


def paired(
    node: Node,
    position: int,
    mask: np.ndarray,
    operands: Sequence[np.ndarray | None],
    value: str,
    *,
    opset: int,
) -> np.ndarray:
    """Return the elements of an operand that given elements of a result are computed from.

    Args:
        node: The operator.
        position: Position of the operand among its inputs.
        mask: Elements of the result, of its shape.
        operands: All of its inputs.
        value: Which of its results.
        opset: Operator set of the model.
    """
    operand = operands[position]
    shape = () if operand is None else operand.shape
    if not node.domain:
        if node.op_type in BROADCAST and len(shape) <= mask.ndim:
            padded = (1,) * (mask.ndim - len(shape)) + shape
            axes = tuple(axis for axis, size in enumerate(padded) if size == 1)
            return np.asarray(np.broadcast_to(mask.any(axis=axes, keepdims=True), padded)).reshape(shape)
        if node.op_type in _RESHAPED and position == 0:
            return mask.reshape(shape)
        if node.op_type in _MOVED and (found := _moved(node, position, mask, operands, value, opset)) is not None:
            return found
    return np.ones(shape, np.bool_)


def _moved(
    node: Node, position: int, mask: np.ndarray, operands: Sequence[np.ndarray | None], value: str, opset: int
) -> np.ndarray | None:
    """Return where a result's elements come from by letting the operator move the operand's element numbers."""
    operand, kernel = operands[position], kernel_for(node.op_type)
    if operand is None or kernel is None or operand.dtype.kind != "f":
        return None
    numbers = [None if x is None else np.full(x.shape, -1.0) if x.dtype.kind == "f" else x for x in operands]
    numbers[position] = np.arange(operand.size, dtype=np.float64).reshape(operand.shape)
    made = kernel(Call(node.op_type, opset, tuple(numbers), node.attributes, len(node.outputs)))
    moved = np.asarray(made[node.outputs.index(value)] if isinstance(made, tuple | list) else made)
    if moved.shape != mask.shape:
        return None
    chosen = moved[mask & (moved >= 0)].astype(np.int64)
    found = np.zeros(operand.size, np.bool_)
    found[chosen] = True
    return found.reshape(operand.shape)
