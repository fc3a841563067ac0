"""Error metrics of many values against stored tensors, measured as they arrive."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure_many
from tensortriage.compare.reference_checks import same_kind
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType
from tensortriage.values.store import TensorStore

Keep = Callable[[str, np.ndarray, Metrics], None]
"""Called with each array as it arrives, and its figures."""


@frozen_dataclass
class Measured:
    """Figures of many values against stored ones.

    Attributes:
        metrics: By value name, in topological order.
        misshapen: Values that have another shape, or another kind of type, than the stored ones, so that they have no
            figures; each with both in words (see `difference_in_kind`).
        judged: The user's tolerance's judgement of each value that it covers.
    """

    metrics: Mapping[str, Metrics]
    misshapen: Mapping[str, str] = dataclasses.field(default_factory=dict)
    judged: Mapping[str, Judgement] = dataclasses.field(default_factory=dict)


def compare_all(
    arrays: Iterable[tuple[str, np.ndarray]],
    base: TensorStore,
    keep: Keep | None = None,
    tolerances: Mapping[str, Tolerance] = MappingProxyType({}),
) -> Measured:
    """Measure arrays against stored ones as they arrive, and judge them without holding any.

    Args:
        arrays: Name and array of each value, any dtype and shape.
        base: Stored arrays of these names.
        keep: Called with each array that has the shape and kind of type of the stored one, and its figures.
        tolerances: The user's tolerance by the name of a value that it judges.
    """
    misshapen: dict[str, str] = {}
    pending: dict[str, np.ndarray] = {}

    def pairs() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        for name, array in arrays:
            reference = base[name]
            if difference := difference_in_kind(reference, array):
                misshapen[name] = difference
                continue
            if keep is not None or name in tolerances:
                pending[name] = array
            yield name, reference, array

    metrics: dict[str, Metrics] = {}
    judged: dict[str, Judgement] = {}
    for name, figure in measure_many(pairs()):
        metrics[name] = figure
        array = pending.pop(name, None)
        if array is not None and name in tolerances:
            judged[name] = tolerances[name].judge(name, figure, base[name], array)
        if array is not None and keep is not None:
            keep(name, array, figure)
    return Measured(metrics, misshapen, judged=judged)


def difference_in_kind(reference: np.ndarray, target: np.ndarray) -> str:
    """Return the difference of two arrays that cannot be compared number by number; empty when they can.

    Args:
        reference: Any shape, of any element type.
        target: Likewise.
    """
    if target.shape != reference.shape:
        return f"shape {list(target.shape)} instead of {list(reference.shape)}"
    if not same_kind(reference, target):
        expected, found = (DType.from_numpy(array.dtype).label for array in (reference, target))
        return f"type {found} instead of {expected}"
    return ""
