"""Rounding of float64 arrays to what narrower floating-point types hold; the arrays stay float64.

An evaluator that computes in float64 and rounds each result once is a correctly rounded evaluator of the narrow type,
because float64 has more than twice the digits of the types here (Figueroa 1995, "When is double rounding innocuous?").
"""

import dataclasses

import numpy as np

from tensortriage.values.dtype import DType

_BF16_DROPPED = 45  # of the 52 bits of a float64 fraction, bfloat16 keeps 7
_SMALLEST_NORMAL = 2.0**-126  # of float32 and bfloat16 (IEEE 754 binary32)
_BF16_QUANTUM_SHIFT = 1.5 * 2.0 ** (52 - 133)  # adding it rounds to multiples of 2**-133, the smallest subnormal
FLUSHED = frozenset({DType.FLOAT, DType.BFLOAT16, DType.DOUBLE})
"""Types whose subnormal numbers `Rounding` flushes; CUDA's -ftz=true as well leaves those of float16 alone."""


def rounded(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Return a float64 array rounded to the nearest values of a type, ties to even; beyond its range to infinity.

    Args:
        x: float64 array of any shape.
        dtype: A floating-point type; float8 numbers beyond the range become NaN where the type has no infinity.
    """
    if dtype is DType.DOUBLE:
        return x
    if dtype is DType.BFLOAT16:
        return _to_bfloat16(x)
    if dtype.bits < 16:  # ml_dtypes converts float64 by way of float32
        return x.astype(np.float32).astype(dtype.numpy).astype(np.float64)
    return x.astype(dtype.numpy).astype(np.float64)


def _to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Round in one step: by way of float32 a number next to a tie would be rounded twice."""
    bits = np.ascontiguousarray(x).view(np.int64)
    odd = (bits >> _BF16_DROPPED) & 1
    kept = (bits + ((1 << (_BF16_DROPPED - 1)) - 1) + odd) & -(1 << _BF16_DROPPED)
    y = kept.view(np.float64).astype(np.float32).astype(np.float64)  # brings what is out of range to infinity
    small = np.abs(x) < _SMALLEST_NORMAL
    if small.any():
        y[small] = (x[small] + _BF16_QUANTUM_SHIFT) - _BF16_QUANTUM_SHIFT
    y[np.isnan(x)] = np.nan
    return y.reshape(x.shape)


@dataclasses.dataclass(frozen=True, slots=True)
class Rounding:
    """What happens to one floating-point value on its way from one operator to the next.

    Attributes:
        types: Types it is rounded to, one after the other.
        flush: Whether subnormal numbers of the last type become zero, see `FLUSHED`.
    """

    types: tuple[DType, ...]
    flush: bool = False

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return a float64 array rounded; any other array unchanged."""
        if x.dtype != np.float64:
            return x
        for dtype in self.types:
            x = rounded(x, dtype)
        if self.flush and self.types and self.types[-1] in FLUSHED:
            x = np.where(np.abs(x) < float(self.types[-1].finfo.smallest_normal), np.copysign(0.0, x), x)
        return x
