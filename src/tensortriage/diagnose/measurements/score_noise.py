"""How far the scores behind a decision may be off in a healthy run: the radius within which decisions are ties.

Measured as floors are, but per element, for a decision hangs on single scores: the largest difference that float64, or
rounding every result to the target's format, makes in a score (`tensortriage.envelope.score_radii`).
"""

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.envelope.floors import jitter
from tensortriage.envelope.score_radii import format_radius, fp32_radius
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.runs.lab import FLOAT64
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
    """
    made = [name for name in arrays if model.graph.producer(name) is not None]
    exact = _first(inv, model, feed, made)
    fp32 = {name: fp32_radius(array, exact.get(name)) for name, array in arrays.items()}
    if inv.precision not in ROUNDED:
        return Radii(fp32, fp32)
    rounded = round_results(model, inv.precision, specs=specs)
    shown = inv.lab.values(PLAIN, rounded, feed, made, specs=specs)
    emulated = {name: np.asarray(shown[name]) for name in shown.names()}
    target = {
        name: np.maximum(fp32[name], format_radius(array, emulated.get(name), inv.precision))
        for name, array in arrays.items()
    }
    return Radii(fp32, target)


def _first(inv: Investigation, model: Model, feed: Feed, names: Sequence[str]) -> Mapping[str, np.ndarray]:
    """Return the values in float64, or of moved inputs where float64 is not to be had."""
    moved = Feed(f"{feed.name} jittered", jitter(feed.tensors), feed.origin)
    ways: list[tuple[EngineSpec, Feed]] = [(PLAIN, moved)]
    if inv.question.trusts_float64:
        ways.insert(0, (FLOAT64, feed))
    for spec, tensors in ways if names else ():
        with contextlib.suppress(EngineError, UsageError):
            shown = inv.lab.values(spec, model, tensors, names, specs={})
            return {name: np.asarray(shown[name]) for name in shown.names()}
    return {}
