"""Single elements that an op gets wrong on golden operands, each judged by its own size instead of its tensor's.

An RMS hides an element of 0 where 1e-20 is right, and the op that takes its logarithm is blamed. Here the ops of a
trail run alone on the target, and the elements of the trail are compared with the centre of the envelope.
"""

from collections.abc import Mapping

import numpy as np

from tensortriage.diagnose.measurements.element_origins.element_trail import BROADCAST, Masks, known
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.golden_operands import golden_operands
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.elements import radii, subnormal
from tensortriage.envelope.evaluations import Healthy
from tensortriage.envelope.explanations import AMPLIFIED_FP32, CORRECTLY_ROUNDED
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.values.dtype import DType


@frozen_dataclass
class ElementError:
    """An element that an op makes wrong of golden operands.

    Attributes:
        node: The op.
        value: Its result; of an operand that it takes for zero, the operand.
        index: Index of the element; of an operand, that of the result made of it.
        expected: The element, correctly rounded.
        found: The element on the target.
        elements: How many of the trail are wrong there.
    """

    node: Node
    value: str
    index: tuple[int, ...]
    expected: float
    found: float
    elements: int


@frozen_dataclass
class ElementErrors:
    """Errors of the elements of a trail, each op alone.

    Attributes:
        wrong: One error per wrong result, in topological order.
        flushed: One per value where subnormal numbers became zero.
        results: The target's results on golden operands, by value name.
    """

    wrong: tuple[ElementError, ...]
    flushed: tuple[ElementError, ...]
    results: Mapping[str, np.ndarray]


def element_errors(inv: Investigation, evidence: Evidence, masks: Masks) -> ElementErrors:
    """Run the ops that make some elements alone on golden operands, on the target and as healthy engines do.

    Raises:
        EngineError: When the target, or the evaluation in float64, fails at them.
        UsageError: When the model cannot be evaluated.
    """
    graph, feed = inv.model.graph, evidence.feed
    made = {name: node for name in masks if (node := graph.producer(name)) is not None}
    sets = [[name] for name in dict.fromkeys(node.name for node in made.values())]
    ops = golden_operands(inv, feed).apart(sets, ends_only=True)
    values = [name for name in inv.question.values if name in made]
    inv.lab.progress(f"looking at single elements of {len(values)} ops")
    made_there = inv.lab.outputs(inv.question.target, ops.model, ops.feed)
    results = {name: array for name, array in made_there.items() if name in masks}
    centre = evaluated(inv, CORRECTLY_ROUNDED, ops.model, ops.feed, values)
    amplified = evaluated(inv, AMPLIFIED_FP32, ops.model, ops.feed, values)
    healthy = Healthy.of(ops.model, inv.precision, kept=[name for name in inv.question.kept if name in graph])
    emulation = healthy.format.get("format")
    rounded = evaluated(inv, emulation, ops.model, ops.feed, values) if emulation else {}
    wrong: list[ElementError] = []
    flushed: list[ElementError] = []
    for name in values:
        if name not in results or results[name].shape != masks[name].shape or name not in centre:
            continue
        node, dtype = made[name], DType.from_numpy(results[name].dtype)
        right, found = centre[name], results[name].astype(np.float64)
        radius = radii(
            node.op_type,
            right,
            amplified=amplified[name],
            rounded=rounded.get(name),
            dtype=dtype,
            precision=inv.precision,
        )
        with np.errstate(invalid="ignore"):
            off = masks[name] & np.isfinite(right) & ~(np.abs(found - right) <= radius)
        zeroed = masks[name] & subnormal(right, dtype, inv.precision) & (found == 0.0)
        if zeroed.any():
            flushed.append(worst_of(node, name, zeroed, right, found))
        for operand in dict.fromkeys(node.inputs):
            array = known(inv, evidence, operand)
            if array is None or not (tiny := tiny_for(inv, node, array, off.shape) & off).any():
                continue
            wide = np.broadcast_to(array.astype(np.float64), off.shape)
            flushed.append(worst_of(node, operand, tiny, wide, np.zeros(off.shape)))
            off = off & ~tiny
        if off.any():
            wrong.append(worst_of(node, name, off, right, found))
    return ElementErrors(tuple(wrong), tuple(flushed), results)


def evaluated(
    inv: Investigation, spec: EngineSpec, model: Model, feed: Feed, values: list[str]
) -> dict[str, np.ndarray]:
    """Return values of a healthy evaluation in float64."""
    found = inv.lab.values(spec, model, feed, values)
    return {name: np.array(found[name], np.float64) for name in found.names()}


def tiny_for(inv: Investigation, node: Node, operand: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return which elements of an element-wise op's result come of an operand's element that may be flushed to zero."""
    dtype = DType.from_numpy(operand.dtype)
    if node.domain or node.op_type not in BROADCAST or operand.ndim > len(shape) or not dtype.is_float:
        return np.zeros(shape, np.bool_)
    return np.broadcast_to(subnormal(operand.astype(np.float64), dtype, inv.precision), shape)


def worst_of(node: Node, value: str, where: np.ndarray, right: np.ndarray, found: np.ndarray) -> ElementError:
    """Return the element with the largest relative error; non-finite ones come first."""
    with np.errstate(all="ignore"):
        off = np.where(where, np.nan_to_num(np.abs(found - right) / np.abs(right), nan=np.inf), -1.0)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(off)), off.shape))
    return ElementError(node, value, index, float(right[index]), float(found[index]), int(where.sum()))
