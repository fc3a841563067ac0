"""How far single scores may be off in a healthy run: within twice this radius, which of two is larger means nothing.

Scores that were masked out lie orders of magnitude away from the others, with errors to match, and are kept apart.
"""

import numpy as np

from tensortriage.compare.judgement.thresholds import MASKED_APART
from tensortriage.compare.judgement.within import format_limit, fp32_limit
from tensortriage.values.dtype import Precision


def fp32_radius(scores: np.ndarray, exact: np.ndarray | None) -> np.ndarray:
    """Return how far each score may be off in a healthy fp32 engine, absolute.

    Args:
        scores: The scores, of any shape.
        exact: The same evaluated exactly; None where that is not known.
    """
    spread = np.maximum(_spread(scores, exact), _half_step(scores, Precision.FP32))
    return np.asarray(fp32_limit(1.0) * spread)


def format_radius(scores: np.ndarray, rounded: np.ndarray | None, precision: Precision) -> np.ndarray:
    """Return how far each score may be off where results are rounded to a format, absolute.

    Args:
        scores: The scores, of any shape.
        rounded: The same with every result rounded to the format; None where that is not known.
        precision: The format.
    """
    once = np.maximum(_spread(scores, rounded), _half_step(scores, precision))
    return np.asarray(format_limit(1.0, scores.size) * once)


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
