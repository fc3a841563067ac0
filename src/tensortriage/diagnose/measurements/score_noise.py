"""How far the scores behind a decision may be off in a healthy run: the radius within which decisions are ties.

Measured as floors are, but per element, for a decision hangs on single scores: the largest difference that healthy
evaluations in fp32, or in the target's format, make in a score (`tensortriage.envelope.score_radii`).
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.envelope.evaluations import Healthy
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED, ROUNDED
from tensortriage.envelope.floors import jitter
from tensortriage.envelope.score_radii import format_radius, fp32_radius
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.values.spec import ValueSpec


@dataclasses.dataclass(frozen=True, slots=True)
class Radii:
    """How far values may be off, absolute and per element, by name.

    Attributes:
        fp32: In a healthy fp32 engine.
        target: In a healthy engine of the target's format; never less.
    """

    fp32: Mapping[str, np.ndarray]
    target: Mapping[str, np.ndarray]


def radii_of(
    inv: Investigation, model: Model, feed: Feed, arrays: Mapping[str, np.ndarray], *, specs: Mapping[str, ValueSpec]
) -> Radii:
    """Measure radii.

    Args:
        inv: The investigation.
        model: The model that makes the values, or takes them as inputs.
        feed: Its inputs.
        arrays: The values in fp32, by name.
        specs: Dtypes and shapes of all values of the model.

    Raises:
        EngineError: When the model is not evaluated in float64, nor by ONNX Runtime.
    """
    made = [name for name in arrays if model.graph.producer(name) is not None]
    healthy = Healthy.of(model, inv.precision, kept=[name for name in inv.question.kept if name in model.graph])

    def each(ways: Sequence[tuple[EngineSpec, Feed]]) -> list[Mapping[str, np.ndarray]]:
        stores = [inv.lab.values(spec, model, tensors, made, specs=specs) for spec, tensors in ways]
        return [{name: np.asarray(store[name]) for name in store.names()} for store in stores]

    emulated = [EngineSpec("emulate", {"precision": inv.precision.value})] if inv.precision in ROUNDED else []
    moved = Feed(f"{feed.name} jittered", jitter(feed.tensors), feed.origin)
    otherwise = [(PLAIN, moved), *((spec, feed) for spec in emulated)]
    evaluations = [(spec, feed) for spec in (CORRECTLY_ROUNDED, *healthy.format.values())]
    try:
        exact, *rounded = each(evaluations if inv.question.trusts_float64 else otherwise)
    except (EngineError, UsageError):
        exact, *rounded = each(otherwise)
    fp32 = {name: fp32_radius(array, exact.get(name)) for name, array in arrays.items()}
    target = dict(fp32)
    for one in rounded:
        for name, array in arrays.items():
            target[name] = np.maximum(target[name], format_radius(array, one.get(name), healthy.results))
    return Radii(fp32, target)
