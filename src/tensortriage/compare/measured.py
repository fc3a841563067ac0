"""Error metrics of many values of one run against stored tensors, measured as they arrive and kept in the case."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure_many
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.runs.refusals import Unseen
from tensortriage.values.dtype import DType
from tensortriage.values.store import TensorStore

Keep = Callable[[str, np.ndarray, Metrics], None]
"""Called with each array as it arrives, and its figures."""


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """Figures of many values against stored ones.

    Attributes:
        metrics: By value name, in topological order.
        misshapen: Values that have another shape, or another kind of type, than the stored ones, so that they have no
            figures; each with both in words (see `difference_in_kind`).
        unseen: Values that the engine did not show.
        judged: What the user's tolerance says of those that it was asked about.
    """

    metrics: Mapping[str, Metrics]
    misshapen: Mapping[str, str] = dataclasses.field(default_factory=dict)
    unseen: Unseen = dataclasses.field(default_factory=Unseen)
    judged: Mapping[str, Judgement] = dataclasses.field(default_factory=dict)


def measured(
    lab: Lab,
    spec: EngineSpec,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    *,
    base: TensorStore,
    what: str,
    base_name: str = "",
    keep: Keep | None = None,
    progress: Callable[[str], None] | None = None,
    partly: bool = False,
    tolerances: Mapping[str, Tolerance] = MappingProxyType({}),
) -> Measured:
    """Run a model with the wanted values marked and return their figures against stored tensors.

    Args:
        lab: Where engines are asked.
        spec: Engine to run on.
        model: Model to mark and run.
        feed: Its inputs.
        values: Value names of ``model``, which are also names in ``base``.
        base: What they are compared with.
        what: Said while it takes place, e.g. ``every layer on openvino``.
        base_name: Tells answers apart that were compared with different tensors, or come from different builds.
        keep: Called with each array as it arrives (not when the figures come from the case).
        progress: Told ``what``.
        partly: Whether values that the engine refuses to show are left out, instead of nothing being measured.
        tolerances: The user's tolerance by the name of a value that it judges.

    Raises:
        EngineError: When the engine refuses or fails the marked model.
    """
    known = [value for value in values if value in base]

    def ask() -> Measured:
        if progress is not None:
            progress(f"running {what}")
        specs = {name: base.spec(name) for name in known}
        hidden: list[Unseen] = []
        arrays = lab.capture(spec, model, feed, known, specs=specs, unseen=hidden.append if partly else None)
        found = compare_all(arrays, base, keep, tolerances)
        return dataclasses.replace(found, unseen=functools.reduce(Unseen.joined, hidden, Unseen()))

    words = ["measured", known, *([base_name] if base_name else []), *in_words(tolerances)]
    return lab.case.checks.remember(lab.key(spec, model, feed, *words), what, Measured, ask)


def in_words(tolerances: Mapping[str, Tolerance]) -> list[object]:
    """Return the part of a key that answers judged by other tolerances have not in common."""
    return [[name, repr(tolerance)] for name, tolerance in tolerances.items()]


def compare_all(
    arrays: Iterable[tuple[str, np.ndarray]],
    base: TensorStore,
    keep: Keep | None = None,
    tolerances: Mapping[str, Tolerance] = MappingProxyType({}),
) -> Measured:
    """Measure arrays against stored ones as they arrive, holding none, and judge them while they are at hand.

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
    """Say in what two arrays differ that cannot be compared number by number; empty when they can.

    Args:
        reference: Any shape, of any element type.
        target: Likewise.
    """
    if target.shape != reference.shape:
        return f"shape {list(target.shape)} instead of {list(reference.shape)}"
    expected, found = DType.from_numpy(reference.dtype), DType.from_numpy(target.dtype)
    if expected.is_float != found.is_float:
        return f"type {found.label} instead of {expected.label}"
    return ""
