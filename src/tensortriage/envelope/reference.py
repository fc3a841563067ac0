"""Judges a reference by the envelope: values that no healthy engine would compute from this model are not the truth."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.envelope.distances import EXTERNAL, distances
from tensortriage.envelope.floors import envelope_floors
from tensortriage.envelope.setting import Floors
from tensortriage.inputs.feed import Feed, feed_digest
from tensortriage.model.model import Model
from tensortriage.runs.check_cache import digest
from tensortriage.runs.lab import FLOAT64, Lab
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.store import TensorStore


@dataclasses.dataclass(frozen=True, slots=True)
class Dispute:
    """A value of the reference that is not what the model computes.

    Attributes:
        value: Its name.
        error: Relative RMS error against the model evaluated as its types say; inf for another shape.
        limit: What healthy engines make of it at most.
        shape: Shape in the reference, where that differs from what the model gives.
    """

    value: str
    error: float
    limit: float
    shape: tuple[int, ...] = ()


def outside_envelope(floors: Floors, names: Sequence[str]) -> dict[str, Dispute]:
    """Return which of the reference's values are outside, in the order of the names."""
    found: dict[str, Dispute] = {}
    for name in names:
        if name in floors.reference:
            error, limit = error_of(floors.reference[name]), floors.in_fp32(name).error
            if error > limit:
                found[name] = Dispute(name, error, limit)
    return found


def disputes(lab: Lab, model: Model, feed: Feed, values: Sequence[str], reference: TensorStore) -> tuple[Dispute, ...]:
    """Return which stored values are not what a model computes, in topological order.

    Values in float64 may also be those of an evaluation in float64 throughout, which is right in its own way.

    Args:
        lab: Where the model is evaluated.
        model: The model.
        feed: The inputs that the values are said to belong to.
        values: Names of stored values, in topological order.
        reference: The values.

    Raises:
        EngineError: When the model cannot be evaluated.
        UsageError: Likewise.
    """
    told = digest(*(feed_digest({name: np.asarray(reference[name])}) for name in values if name in reference))
    floors = envelope_floors(
        lab,
        model,
        feed,
        values,
        precision=Precision.FP32,
        reference=reference,
        reference_name=told,
        what="the reference's values",
    )
    found = outside_envelope(floors, values)
    for name in values:
        if name not in floors.reference and name in floors.fp32:
            found[name] = Dispute(name, float("inf"), 0.0, _shape(reference, name))
    double = [name for name in found if reference.spec(name).dtype is DType.DOUBLE]
    if double:
        exact = distances(
            lab, model, feed, double, {}, centre=FLOAT64, external=reference, external_name=told,
            what="float64 throughout",
        )  # fmt: skip
        for name, figure in exact[EXTERNAL].items():
            if error_of(figure) <= floors.in_fp32(name).error:
                found.pop(name)
    return tuple(found[name] for name in values if name in found)


def _shape(store: TensorStore, name: str) -> tuple[int, ...]:
    return tuple(size for size in store.spec(name).shape or () if isinstance(size, int))
