"""Judges a reference by the envelope: values that no healthy engine would compute from this model are not the truth.

Nor are those of kernels that saturate int16, which exist on some processors.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import difference, error_of
from tensortriage.engines.cpu_features import sums_in_int16
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.distances import EvaluatedModel, StoredValues
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED
from tensortriage.envelope.floors import envelope_floors, healthy_in
from tensortriage.envelope.limits import ROUNDED_ONCE
from tensortriage.envelope.setting import Floors
from tensortriage.errors import DataError, EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed, feed_digest
from tensortriage.model.model import Model
from tensortriage.model.quantization.int8_products import unsigned_weights
from tensortriage.model.quantization.int16_products import int16_products
from tensortriage.runs.check_cache import digest
from tensortriage.runs.lab import FLOAT64, Lab
from tensortriage.runs.observation.experiment import ObservedFigures
from tensortriage.values.dtype import DType
from tensortriage.values.store import TensorStore
from tensortriage.values.text import error_size


@frozen_dataclass
class Dispute:
    """A wrong value of the reference.

    Attributes:
        value: Its name.
        error: Relative RMS error against the model evaluated as its types prescribe; inf for another shape.
        limit: The largest healthy error there.
        shape: Shape in the reference, where that differs from the model's.
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
    """Return the stored values that differ from the model's own, in topological order.

    Values in float64 may also be those of an evaluation in float64 throughout, which is right in its own way.

    Args:
        lab: The lab that evaluates the model.
        model: The model.
        feed: The inputs that the values are claimed to belong to.
        values: Names of stored values, in topological order.
        reference: The values.

    Raises:
        EngineError: When the model cannot be evaluated.
        UsageError: Likewise.
    """
    identity = digest(*(feed_digest({name: np.asarray(reference[name])}) for name in values if name in reference))
    judged, what = StoredValues(identity, reference, values), "the reference's values"
    floors = envelope_floors(EvaluatedModel(lab, model, feed), values, healthy_in(model), judged=judged, what=what)
    found = outside_envelope(floors, values)
    for name in values:
        if name not in floors.reference and name in floors.fp32:
            found[name] = Dispute(name, float("inf"), 0.0, reference.spec(name).sizes)
    double = [name for name in found if reference.spec(name).dtype is DType.DOUBLE]
    if double:
        wanted = ObservedFigures(double, reference)
        exact = lab.figures(FLOAT64, model, feed, wanted, what="evaluating float64 throughout")
        for name, figure in exact.figures.metrics.items():
            if error_of(figure) <= floors.in_fp32(name).error:
                found.pop(name)
    return tuple(found[name] for name in values if name in found)


def cut_off(lab: Lab, engine: EngineSpec, model: Model, feed: Feed) -> float:
    """Return how far an engine is off on a model for int8 weights alone; 0 where it is not, or float64 is no way out.

    It runs the same with weights in uint8, which stand for the same numbers; OpenVINO, which computes otherwise with
    these, is compared with the prediction.
    """
    other = unsigned_weights(model) if sums_in_int16(engine.name) else None
    if other is None:
        return 0.0
    try:
        fed = check_feed(feed, model.inputs, casting=Casting.ROUND)
        made = lab.outputs(engine, model, fed)
        if engine.name != "openvino" and not (lost := _apart(lab.outputs(engine, other, fed), made)):
            return 0.0
        right = lab.outputs(CORRECTLY_ROUNDED, model, fed)
        if engine.name != "openvino":
            return lost
        foreseen = lab.outputs(CORRECTLY_ROUNDED, int16_products(model, by_tap=True) or model, fed)
    except (EngineError, DataError):
        return 0.0
    return _apart(right, made) if _apart(foreseen, made) < _apart(right, made) else 0.0


def cut_off_in_words(reference: EngineSpec, lost: float) -> str:
    """Return why float64 takes a reference's place, as a clause."""
    return (
        f"float64 is the reference: {reference} adds products of 8-bit numbers in saturating int16 on this processor, "
        f"which has no VNNI, and is off by {error_size(lost)} for it"
    )


def _apart(right: Mapping[str, np.ndarray], made: Mapping[str, np.ndarray]) -> float:
    """Return the largest error of outputs; 0 where a rounding more or less makes it."""
    lost = max((difference(right[name], made[name]) for name in right if name in made), default=0.0)
    return lost if lost > ROUNDED_ONCE else 0.0
