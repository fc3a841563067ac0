"""Figures of many values of one run against stored tensors, measured as they arrive and remembered in the case."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.metrics.tensor_metrics import Metrics, measure_many
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.values.store import TensorStore

Keep = Callable[[str, np.ndarray, Metrics], None]
"""Called with each array as it arrives, and its figures."""


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """Figures of many values against stored ones.

    Attributes:
        metrics: By value name, in topological order.
        reshaped: Values whose shape differs from the stored one, so that they have no figures.
    """

    metrics: Mapping[str, Metrics]
    reshaped: tuple[str, ...] = ()


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
        base_name: Tells answers apart that were compared with different tensors.
        keep: Called with each array as it arrives (not when the figures come from the case).
        progress: Told ``what``.
    """
    known = [value for value in values if value in base]

    def ask() -> Measured:
        if progress is not None:
            progress(f"running {what}")
        specs = {name: base.spec(name) for name in known}
        return compare_all(lab.capture(spec, model, feed, known, specs=specs), base, keep)

    words = ["measured", known, *([base_name] if base_name else [])]
    return lab.case.checks.remember(lab.key(spec, model, feed, *words), what, Measured, ask)


def compare_all(arrays: Iterable[tuple[str, np.ndarray]], base: TensorStore, keep: Keep | None = None) -> Measured:
    """Measure arrays against stored ones as they arrive, holding none."""
    reshaped: list[str] = []
    pending: dict[str, np.ndarray] = {}

    def pairs() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        for name, array in arrays:
            reference = base[name]
            if array.shape != reference.shape:
                reshaped.append(name)
                continue
            if keep is not None:
                pending[name] = array
            yield name, reference, array

    metrics: dict[str, Metrics] = {}
    for name, figure in measure_many(pairs()):
        metrics[name] = figure
        if keep is not None:
            keep(name, pending.pop(name), figure)
    return Measured(metrics, tuple(reshaped))
