"""Was a weight smoothed before it was quantized? A factor per input went into it, and out of the other operand.

SmoothQuant (Xiao et al., ICML 2023) moves outliers of activations into weights so: the product stays the same, the
weight becomes another one. Such a weight fits its scale as it is, and not as the original has it.
"""

import numpy as np

from tensortriage.precision.sdk import MATCH_SCALE

_SMOOTHED_REST = 0.03
"""Largest relative error that quantizing leaves of a smoothed weight, its factors aside: 8 bits with a scale for the
whole weight leave about 2 %, and another weight leaves all of it."""


def smoothing(original: np.ndarray, stored: np.ndarray) -> np.ndarray | None:
    """Return the factors by which the rows of a weight were multiplied; None where it is no such weight.

    Args:
        original: The weight, ``[inputs, outputs]``.
        stored: The dequantized weight in its place, of the same shape.

    Returns:
        One positive number per input, ``[inputs, 1]``.
    """
    if original.ndim != 2 or original.shape != stored.shape or original.shape[1] < 2:
        return None
    one, other = original.astype(np.float64), stored.astype(np.float64)
    size = np.square(one).sum(axis=1, keepdims=True)
    factors = np.divide((one * other).sum(axis=1, keepdims=True), size, out=np.ones_like(size), where=size > 0.0)
    whole = float(np.square(other).sum())
    rest = float(np.square(other - factors * one).sum())
    before = float(np.square(other - one).sum())
    if not (factors > 0.0).all() or np.ptp(factors) <= MATCH_SCALE * float(factors.mean()):
        return None
    return factors if rest <= _SMOOTHED_REST**2 * whole and before > rest + _SMOOTHED_REST**2 * whole else None
