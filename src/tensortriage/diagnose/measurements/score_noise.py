"""How far the scores behind a decision may be off in a healthy run: the radius within which decisions are ties.

Measured as floors are, but per element, for a decision hangs on single scores: the largest difference that float64, or
rounding every result to the target's format, makes in a score. Scores that were masked out lie orders of magnitude
away from the others, with errors to match, and are kept apart.
"""

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.within import format_limit, fp32_limit
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.envelope.floors import ROUNDED, jitter
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.runs.lab import FLOAT64
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec

APART = 1e3
"""Ratio of neighbouring magnitudes that sets masked scores apart: masks are -1e4, -65504, -1e9 or the like, added to
scores of 1 to 100."""


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
    fp32 = {
        name: fp32_limit(1.0) * np.maximum(_spread(array, exact.get(name)), _half_step(array, Precision.FP32))
        for name, array in arrays.items()
    }
    if inv.precision not in ROUNDED:
        return Radii(fp32, fp32)
    rounded = round_results(model, inv.precision, specs=specs)
    emulated = dict(inv.capture(PLAIN, rounded, feed, made, specs=specs)) if made else {}
    target = {}
    for name, array in arrays.items():
        allowance = format_limit(1.0, array.size)
        once = np.maximum(_spread(array, emulated.get(name)), _half_step(array, inv.precision))
        target[name] = np.maximum(fp32[name], allowance * once)
    return Radii(fp32, target)


def _first(inv: Investigation, model: Model, feed: Feed, names: Sequence[str]) -> Mapping[str, np.ndarray]:
    """Return the values in float64, or of moved inputs where float64 is not to be had."""
    moved = Feed(f"{feed.name} jittered", jitter(feed.tensors), feed.origin)
    ways: list[tuple[EngineSpec, Feed]] = [(PLAIN, moved)]
    if inv.question.trusts_float64:
        ways.insert(0, (FLOAT64, feed))
    for spec, tensors in ways if names else ():
        with contextlib.suppress(EngineError, UsageError):
            return dict(inv.capture(spec, model, tensors, names, specs={}))
    return {}


def _spread(array: np.ndarray, other: np.ndarray | None) -> np.ndarray:
    """Return per element the largest difference among the scores it stands with; 0 where nothing was measured."""
    wide = np.asarray(array, np.float64)
    if other is None or other.shape != array.shape or not wide.size:
        return np.zeros(wide.shape)
    with np.errstate(invalid="ignore"):
        difference = np.abs(np.asarray(other, np.float64) - wide)
    known = np.isfinite(difference)
    magnitudes = np.abs(wide)
    masked = magnitudes > _mask_begins(magnitudes[known])
    own = np.where(known, difference, 0.0)
    return np.where(masked, own, own[known & ~masked].max(initial=0.0))


def _mask_begins(magnitudes: np.ndarray) -> float:
    """Return the largest magnitude below which no gap of `APART` is; inf when there is no gap."""
    ascending = np.unique(magnitudes[magnitudes > 0.0])
    typical = ascending[ascending >= np.median(ascending)] if ascending.size else ascending
    gaps = np.flatnonzero(typical[1:] > APART * typical[:-1])
    return float(typical[gaps[0]]) if gaps.size else np.inf


def _half_step(array: np.ndarray, precision: Precision) -> np.ndarray:
    """Return the error of rounding each element once to nearest: half a unit in the last place, at most."""
    if precision is Precision.INT8:
        return np.zeros(array.shape)
    magnitudes = np.where(np.isfinite(array), np.abs(np.asarray(array, np.float64)), 0.0)
    return np.asarray(magnitudes * float(precision.dtype.finfo.eps) / 2)
