"""The error limit of a healthy engine at one element, where a single element decides the result.

The same rows as for whole tensors, by another norm.

A tensor's radius is an RMS: an element of 1e-20 among elements of size 1 may be anything up to 1e-7, although its
logarithm, quotient or root is then another number. An element-wise operator can be right at every element, so there the
radius is the rounding of the element itself, and the distance below the type's normal numbers. Sums, and operators with
cancellation inside, are as accurate as their largest terms: there the largest error that the amplified evaluation makes
anywhere in the tensor counts everywhere.

Of scores, which of two is larger means nothing within twice this radius. Scores that were masked out lie orders of
magnitude away from the others, with errors to match, and are kept apart.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.envelope.evaluations import Healthy
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED, ROUNDED
from tensortriage.envelope.limits import of_floor, of_rounding
from tensortriage.envelope.setting import Setting
from tensortriage.errors import EngineError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.synthetic.jitter import jitter
from tensortriage.model.mixed_precision.rounding_nodes import MOVES_DATA
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.spec import ValueSpec

MASKED_APART = 1e3
"""Ratio of neighbouring magnitudes that sets masked scores apart: masks are -1e4, -65504, -1e9 or the like, added to
scores of 1 to 100."""

OWN_SCALE = MOVES_DATA | frozenset({
    "Add", "Cast", "Ceil", "Clip", "Div", "Erf", "Exp", "Floor", "LeakyRelu", "Mul", "PRelu", "Pow", "Reciprocal",
    "Round", "Sigmoid", "Sign", "Softmax", "Softplus", "Softsign", "Sqrt", "Sub", "Swish", "Tanh", "ThresholdedRelu",
})  # fmt: skip
"""Operators that can be as accurate at a small element as at a large one: nothing has to cancel inside."""


def radii(
    op_type: str,
    centre: np.ndarray,
    *,
    amplified: np.ndarray,
    rounded: np.ndarray | None,
    dtype: DType,
    precision: Precision,
) -> np.ndarray:
    """Return the absolute error that is healthy at each element of an operator's result.

    Args:
        op_type: ONNX operator.
        centre: The operator's correctly rounded result, of any shape, in float64.
        amplified: The amplified evaluation's result; it counts where elements have no scale of their own.
        rounded: The result with everything rounded to the engine's format; None where that is the model's own.
        dtype: Type of the result.
        precision: Format that the engine computes in.
    """
    radius = np.maximum(own_rounding(dtype, precision) * np.abs(centre), smallest_normal(dtype, precision))
    with np.errstate(invalid="ignore"):
        if rounded is not None:
            radius = np.maximum(radius, np.nan_to_num(np.abs(rounded - centre), nan=np.inf))
        if op_type not in OWN_SCALE:
            radius = np.maximum(radius, np.nan_to_num(np.abs(amplified - centre), nan=np.inf).max(initial=0.0))
    return np.asarray(radius)


def own_rounding(dtype: DType, precision: Precision) -> float:
    """Return how far an element may be off by its own rounding, relative to it."""
    return of_floor(spacing(dtype, precision))


def spacing(dtype: DType, precision: Precision) -> float:
    """Return the relative spacing of the numbers that a value of a type has in a format, the coarser of the two."""
    if precision is Precision.TF32:
        return 2.0**-10
    return max(float(each.finfo.eps) for each in _formats(dtype, precision))


def smallest_normal(dtype: DType, precision: Precision) -> float:
    """Return the smallest number that engines that flush subnormals to zero can hold (IEEE 754-2019, 2.1)."""
    return max(float(each.finfo.smallest_normal) for each in _formats(dtype, precision))


def subnormal(array: np.ndarray, dtype: DType, precision: Precision) -> np.ndarray:
    """Return where an array holds numbers that an engine may flush to zero; same shape, of bool.

    Args:
        array: Floating-point values of any shape.
        dtype: Their type.
        precision: The target's format.
    """
    return np.asarray((array != 0.0) & (np.abs(array) < smallest_normal(dtype, precision)))


def _formats(dtype: DType, precision: Precision) -> Collection[DType]:
    return [each for each in (dtype, precision.dtype) if each.is_float] or [DType.FLOAT]


# -- scores ------------------------------------------------------------------------------------------------------------


@frozen_dataclass
class Radii:
    """Allowed absolute errors per element, by value name.

    Attributes:
        fp32: In a healthy fp32 engine.
        target: In a healthy engine of the target's format; never less.
    """

    fp32: Mapping[str, np.ndarray]
    target: Mapping[str, np.ndarray]


def score_radii(setting: Setting, arrays: Mapping[str, np.ndarray], *, specs: Mapping[str, ValueSpec]) -> Radii:
    """Measure how far the scores behind a decision may be off in a healthy run.

    Args:
        setting: The model that makes the scores, or takes them as inputs, its feed, and the target.
        arrays: The scores in fp32, by name.
        specs: Dtypes and shapes of all values of the model.

    Raises:
        EngineError: When the model is not evaluated in float64, nor by ONNX Runtime.
    """
    model, feed, precision = setting.model, setting.feed, setting.precision
    made = [name for name in arrays if model.graph.producer(name) is not None]
    healthy = Healthy.of(model, precision, kept=setting.kept_here)

    def each(ways: Sequence[tuple[EngineSpec, Feed]]) -> list[Mapping[str, np.ndarray]]:
        stores = [setting.lab.values(spec, model, tensors, made, specs=specs) for spec, tensors in ways]
        return [{name: np.asarray(store[name]) for name in store.names()} for store in stores]

    emulated = [EngineSpec("emulate", {"precision": precision.value})] if precision in ROUNDED else []
    moved = Feed(f"{feed.name} jittered", jitter(feed.tensors), feed.origin)
    otherwise = [(PLAIN, moved), *((spec, feed) for spec in emulated)]
    evaluations = [(spec, feed) for spec in (CORRECTLY_ROUNDED, *healthy.format.values())]
    try:
        exact, *rounded = each(evaluations if setting.trusts_float64 else otherwise)
    except (EngineError, UsageError):
        exact, *rounded = each(otherwise)
    fp32 = {name: fp32_radius(array, exact.get(name)) for name, array in arrays.items()}
    target = dict(fp32)
    for one in rounded:
        for name, array in arrays.items():
            target[name] = np.maximum(target[name], format_radius(array, one.get(name), healthy.results))
    return Radii(fp32, target)


def fp32_radius(scores: np.ndarray, exact: np.ndarray | None) -> np.ndarray:
    """Return how far each score may be off in a healthy fp32 engine, absolute.

    Args:
        scores: The scores, of any shape.
        exact: The exact result; None where it is unknown.
    """
    spread = np.maximum(_spread(scores, exact), _half_step(scores, Precision.FP32))
    return np.asarray(of_floor(1.0) * spread)


def format_radius(scores: np.ndarray, rounded: np.ndarray | None, precision: Precision) -> np.ndarray:
    """Return how far each score may be off where results are rounded to a format, absolute.

    Args:
        scores: The scores, of any shape.
        rounded: The result with every step rounded to the format; None where it is unknown.
        precision: The format.
    """
    once = np.maximum(_spread(scores, rounded), _half_step(scores, precision))
    return np.asarray(of_rounding(1.0, scores.size) * once)


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
    """Return the largest magnitude below which no gap of `MASKED_APART` is; inf when there is no gap."""
    ascending = np.unique(magnitudes[magnitudes > 0.0])
    typical = ascending[ascending >= np.median(ascending)] if ascending.size else ascending
    gaps = np.flatnonzero(typical[1:] > MASKED_APART * typical[:-1])
    return float(typical[gaps[0]]) if gaps.size else np.inf


def _half_step(array: np.ndarray, precision: Precision) -> np.ndarray:
    """Return the error of rounding each element once to nearest: half a unit in the last place, at most."""
    if precision is Precision.INT8:
        return np.zeros(array.shape)
    magnitudes = np.where(np.isfinite(array), np.abs(np.asarray(array, np.float64)), 0.0)
    return np.asarray(magnitudes * float(precision.dtype.finfo.eps) / 2)
