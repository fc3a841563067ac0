"""The whole results of the healthy evaluations on a feed, so that each part of a tensor is judged separately.

Rows of a batch, or new rows of a cache, have magnitudes of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope import limits
from tensortriage.envelope.evaluations import Figures, Healthy
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED, Usual
from tensortriage.envelope.limits import Limit
from tensortriage.envelope.registry import freedoms_of_target, orders_of
from tensortriage.envelope.setting import Setting
from tensortriage.errors import EngineError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.values.store import TensorStore

Arrays = Mapping[str, np.ndarray]
Tensors = TypeVar("Tensors", Mapping[str, np.ndarray], TensorStore)

Part = Callable[[np.ndarray], np.ndarray]
"""Picks a part of a tensor."""

CENTRE = "correctly rounded"
"""Name of the evaluation that the others are compared with."""


@frozen_dataclass
class HealthyValues(Generic[Tensors]):
    """The values that healthy evaluations have.

    Attributes:
        healthy: The evaluations.
        values: Their tensors by name, and those of `CENTRE`.
    """

    healthy: Healthy
    values: Mapping[str, Tensors]

    @property
    def centre(self) -> Tensors:
        """The evaluation that the others are compared with."""
        return self.values[CENTRE]

    def limit(self, value: str, part: Part = np.asarray) -> Limit:
        """Return the largest error of a healthy engine at a value, or in a part of it."""
        whole = self.centre[value]
        right = np.ascontiguousarray(part(whole))
        arrays = {name: tensors[value] for name, tensors in self.values.items() if name != CENTRE}
        figures = {
            name: measure(right, np.ascontiguousarray(part(array)).astype(right.dtype))
            for name, array in arrays.items()
            if array.shape == whole.shape
        }
        return limit_of(self.healthy, figures, right.size)


def limit_of(healthy: Healthy, figures: Figures, count: int) -> Limit:
    """Return the largest error of a healthy engine at a value of so many elements, or a part of one."""
    predicted = healthy.floor(figures) if healthy.format else None
    return limits.healthy(count, healthy.fp32_floor(figures), predicted, healthy.cost_of_freedoms(figures))


def typed_limits(setting: Setting, typed: Model, golden: Arrays) -> dict[str, Limit]:
    """Return the limits of the outputs of a model typed in a narrow format, on hardware whose choices are known.

    Sums whose results are stored in float32 stay in float32; engines of the target's class choose the type of others.

    Args:
        setting: The model, its feed, and the target.
        typed: The model whose types set the format of each value.
        golden: The right values of its outputs.

    Returns:
        The limits by output; empty where the hardware is not known or the model cannot be evaluated.
    """
    freedoms = freedoms_of_target(setting.target, Usual.EXPECTED, op_types=setting.op_types)
    if not freedoms or not setting.trusts_float64:
        return {}
    healthy = Healthy.of_types(typed, freedoms)
    try:
        stores = {n: setting.lab.values(each, typed, setting.feed, list(golden)) for n, each in healthy.all.items()}
    except (EngineError, UsageError):
        return {}
    found = {}
    for name, right in golden.items():
        arrays = {each: np.asarray(store[name]) for each, store in stores.items()}
        figures = {
            n: measure(right, array.astype(right.dtype)) for n, array in arrays.items() if array.shape == right.shape
        }
        found[name] = limit_of(healthy, figures, right.size)
    return found


def healthy_of(model: Model, target: EngineSpec) -> Healthy:
    """Return the healthy evaluations of a model in the target's format, with the freedoms expected of its hardware."""
    op_types = {node.op_type for node in model.graph.nodes}
    freedoms = freedoms_of_target(target, Usual.EXPECTED, op_types=op_types)
    return Healthy.of(model, resolve(target).precision, freedoms, orders=orders_of(model))


def healthy_values(
    lab: Lab, model: Model, feed: Feed, values: Sequence[str], *, target: EngineSpec
) -> HealthyValues[TensorStore]:
    """Return the values of a model's healthy evaluations on one feed.

    Args:
        lab: The lab that asks engines.
        model: The model.
        feed: Its inputs.
        values: The wanted values, in topological order.
        target: The engine with the format and the hardware.

    Raises:
        EngineError: When the model cannot be evaluated.
        UsageError: Likewise.
    """
    healthy = healthy_of(model, target)
    specs = {CENTRE: CORRECTLY_ROUNDED, **healthy.all}
    return HealthyValues(healthy, {name: lab.values(spec, model, feed, values) for name, spec in specs.items()})
