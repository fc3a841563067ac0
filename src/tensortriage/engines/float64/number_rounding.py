"""Rounding of arrays to narrower floating-point types; the arrays keep their own type.

An evaluator that computes in float64 and rounds each result once is a correctly rounded evaluator of the narrow type,
because float64 has more than twice the digits of the types here (Figueroa 1995, "When is double rounding innocuous?").
Rounding works on the bits, but for bfloat16 of float32: conversions to float16 and back take seven times as long.
"""

from collections.abc import Callable

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType

BLOCK = 1 << 15
"""Elements of a block of `in_blocks`: 256 KiB of float64."""

FLUSHED = frozenset({DType.FLOAT, DType.BFLOAT16, DType.DOUBLE})
"""Types whose subnormal numbers `Rounding` flushes; CUDA's -ftz=true as well leaves those of float16 alone."""


def rounded(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Return the array rounded to the nearest values of a type, ties to even; beyond its range to infinity.

    Args:
        x: float64 or float32 array of any shape; it is not changed.
        dtype: A floating-point type with at most as many digits; numbers beyond its range become NaN where it has no
            infinity.
    """
    if dtype.numpy == x.dtype or dtype is DType.DOUBLE:
        return x
    if dtype is DType.FLOAT:
        return x.astype(np.float32).astype(x.dtype)
    if dtype is DType.BFLOAT16 and x.dtype == np.float32:
        with np.errstate(all="ignore"):  # NaN and numbers beyond the range propagate
            return x.astype(dtype.numpy).astype(x.dtype)
    wide, narrow = np.finfo(x.dtype), dtype.finfo
    y = shortened(x, wide.nmant - narrow.nmant)
    size = np.abs(x)
    small = size < x.dtype.type(narrow.smallest_normal)
    if small.any():
        # Adding it rounds to multiples of the smallest subnormal number, as its own last bit is that large.
        shift = x.dtype.type(1.5 * 2.0**wide.nmant * float(narrow.smallest_subnormal))
        y[small] = np.copysign((x[small] + shift) - shift, x[small])
    largest = x.dtype.type(narrow.max)
    if not size.max(initial=0) < largest:  # NaN as well
        beyond = x.dtype.type(np.array(np.inf).astype(dtype.numpy))
        y = np.where(np.abs(y) > largest, np.copysign(beyond, x), y)
        y = np.where(np.isnan(x), x, y)
    return y


def shortened(x: np.ndarray, dropped: int, *, truncate: bool = False) -> np.ndarray:
    """Return an array without the last bits of its fractions, rounded to nearest even or cut off.

    Args:
        x: float64 or float32 array; finite, or else the result for NaN is undefined.
        dropped: How many bits, at least one.
        truncate: Whether they are cut off.
    """
    unsigned, width = (np.dtype(np.uint64), 64) if x.dtype == np.float64 else (np.dtype(np.uint32), 32)
    bits = x.view(unsigned)
    mask = np.array(((1 << width) - 1) ^ ((1 << dropped) - 1), unsigned)
    if truncate:
        return np.asarray((bits & mask).view(x.dtype))
    # Half a step less one, and one more where the last bit that stays is odd.
    kept = np.asarray((bits >> np.array(dropped, unsigned)) & np.array(1, unsigned))
    kept += np.array((1 << (dropped - 1)) - 1, unsigned)
    kept += bits
    kept &= mask
    return kept.view(x.dtype)


def in_blocks(change: Callable[..., np.ndarray], x: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Return the result of an element-wise change of an array, block by block.

    Such a change makes some ten sweeps; over a block they stay in the second-level cache.

    Args:
        change: Takes blocks of the arrays, and returns one of the shape and type of the first.
        x: Any array.
        others: Further arguments, of the shape of x.
    """
    if x.size <= BLOCK or not all(array.flags.c_contiguous and array.shape == x.shape for array in (x, *others)):
        return change(x, *others)
    flat, y = [array.reshape(-1) for array in (x, *others)], np.empty_like(x)
    into = y.reshape(-1)
    for start in range(0, x.size, BLOCK):
        into[start : start + BLOCK] = change(*(array[start : start + BLOCK] for array in flat))
    return y


@frozen_dataclass
class Rounding:
    """Conversion of one floating-point value on its way from one operator to the next.

    Attributes:
        types: Types it is rounded to, one after the other.
        flush: Whether subnormal numbers of the last type become zero, see `FLUSHED`.
        cut: Whether float16 is rounded to towards zero.
    """

    types: tuple[DType, ...]
    flush: bool = False
    cut: bool = False

    def __call__(self, x: np.ndarray, exact: np.ndarray | None = None) -> np.ndarray:
        """Return a float64 or float32 array rounded; any other array unchanged. ``exact`` is not looked at."""
        if x.dtype == np.float64 and self.types == (DType.FLOAT,) and not self.flush and x.flags.c_contiguous:
            return _through_float32(x)
        return in_blocks(self.of_block, x) if x.dtype in (np.float64, np.float32) else x

    def of_block(self, x: np.ndarray) -> np.ndarray:
        """Return a float64 or float32 array rounded, all of it at once.

        Args:
            x: Float64 or float32, of any shape.

        Returns:
            In the type of `x`, every element a number of the last format.
        """
        y = x.astype(np.float32) if DType.FLOAT in self.types[:1] else x  # half as many bytes for the next steps
        for dtype in self.types:
            y = _cut_off(y) if self.cut and dtype is DType.FLOAT16 else rounded(y, dtype)
        if self.flush and self.types and self.types[-1] in FLUSHED:
            y = np.where(np.abs(y) < float(self.types[-1].finfo.smallest_normal), np.copysign(0, y), y)
        return y.astype(x.dtype, copy=False)


def _through_float32(x: np.ndarray) -> np.ndarray:
    """Return a contiguous float64 array rounded to float32, the usual target."""
    y, narrow = np.empty_like(x), np.empty(min(x.size, BLOCK), np.float32)
    flat, into = x.reshape(-1), y.reshape(-1)
    for start in range(0, x.size, BLOCK):
        block = narrow[: min(BLOCK, x.size - start)]
        np.copyto(block, flat[start : start + BLOCK], casting="same_kind")
        np.copyto(into[start : start + BLOCK], block)
    return y


def _cut_off(x: np.ndarray) -> np.ndarray:
    """Return a float64 or float32 array rounded towards zero to float16; finite numbers stay finite."""
    y = np.clip(x, -_LARGEST_FLOAT16, _LARGEST_FLOAT16).astype(np.float16)
    y = np.where(np.abs(y.astype(x.dtype)) > np.abs(x), np.nextafter(y, np.float16(0)), y)
    return np.where(np.isinf(x), x, y.astype(x.dtype))


_LARGEST_FLOAT16 = float(DType.FLOAT16.finfo.max)
