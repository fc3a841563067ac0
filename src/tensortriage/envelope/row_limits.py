"""How large an error a healthy engine may have in single rows of a batch, or in any other part of a tensor.

The evaluations are those of the noise floors; here their tensors are kept, so that each part is judged by its own
magnitude and not by that of the whole.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import Limit, healthy_limit
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.floors import PREDICTED, either_side, format_member, format_members, fp32_floor, fp32_members
from tensortriage.envelope.freedoms import expected_of
from tensortriage.envelope.hardware import Hardware
from tensortriage.envelope.members import CENTRE
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision
from tensortriage.values.store import TensorStore

Part = Callable[[np.ndarray], np.ndarray]
"""Picks a part of a tensor."""


class HealthySpread:
    """The healthy evaluations of a model on one feed, whole.

    Args:
        lab: Where engines are asked.
        model: The model.
        feed: Its inputs.
        values: Values that are asked about, in topological order.
        target: The engine whose format and hardware count.
        precision: The format that it computes in.

    Raises:
        EngineError: When the model cannot be evaluated.
        UsageError: Likewise.
    """

    def __init__(
        self, lab: Lab, model: Model, feed: Feed, values: Sequence[str], *, target: EngineSpec, precision: Precision
    ) -> None:
        self._fp32 = tuple(fp32_members(model))
        members = healthy_members(model, target, precision)
        self.centre, _ = lab.recorded(CENTRE, model, feed, values)
        self._stores: Mapping[str, TensorStore] = {
            name: lab.recorded(spec, model, feed, values)[0] for name, spec in members.items()
        }

    def limit(self, value: str, part: Part) -> float:
        """Return the largest relative RMS error of a healthy engine in a part of a value; inf where any is healthy."""
        centre = self.centre[value]
        alike = {name: store[value] for name, store in self._stores.items() if store[value].shape == centre.shape}
        return limit_among(part(centre), {name: part(array) for name, array in alike.items()}, self._fp32).error


def limit_among(centre: np.ndarray, members: Mapping[str, np.ndarray], fp32: Collection[str]) -> Limit:
    """Return the largest error of a healthy engine at a value, or a part of one, from healthy evaluations of it.

    Args:
        centre: The value correctly rounded.
        members: The value as others of `healthy_members` have it, by name, of the same shape.
        fp32: Which of them stand for fp32.
    """
    right = np.ascontiguousarray(centre)
    figures = {n: measure(right, np.ascontiguousarray(array).astype(right.dtype)) for n, array in members.items()}
    floor = max((fp32_floor(figures[name]) for name in fp32 if name in figures), default=0.0)
    predicted, chosen = (
        max((error_of(figure) for name, figure in figures.items() if name.startswith(kind)), default=None)
        for kind in ("format", "chosen")
    )
    return healthy_limit(right.size, floor, predicted, chosen)


def healthy_members(model: Model, target: EngineSpec, precision: Precision) -> dict[str, EngineSpec]:
    """Return the healthy evaluations by what they stand for; see `tensortriage.envelope.floors`."""
    found = fp32_members(model)
    emulation = format_member(precision) if precision in PREDICTED else None
    found |= format_members(model, precision) if emulation is not None else {}
    op_types = {node.op_type for node in model.graph.nodes}
    freedoms = [each for each in expected_of(Hardware.of(target), precision) if each.concerns(op_types)]
    if freedoms:
        options = dict(emulation.options) if emulation is not None and emulation.name == CENTRE.name else {}
        for freedom in freedoms:
            options |= freedom.options
        found |= either_side(model, "chosen", options)
    return found
