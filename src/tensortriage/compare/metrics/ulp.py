"""How many representable numbers apart two floats are: the error in the unit that the number format itself has.

The bit pattern of a non-negative IEEE float, read as an integer, counts the representable numbers up to it. So the
distance of two floats is the difference of those integers when the signs agree, and their sum when they do not
(B. Dawson, "Comparing Floating Point Numbers", 2012). Between arrays of different types the distance is counted in the
coarser one, after rounding the other to it: a bfloat16 result is not blamed for not being float32.
"""

import functools
from typing import Any

import numpy as np

from tensortriage.values.dtype import DType

_INTEGER = {1: np.dtype(np.int8), 2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}
_MAGNITUDE = {size: 2 ** (8 * size - 1) - 1 for size in _INTEGER}


@functools.cache
def coarser(reference: np.dtype[Any], target: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the floating type with the larger epsilon, the component type for complex ones, None without floats."""
    floats = [_component(dtype) for dtype in (reference, target)]
    known = [dtype for dtype in floats if dtype is not None]
    return max(known, key=lambda dtype: (float(DType.from_numpy(dtype).finfo.eps), dtype.name)) if known else None


def max_distance(reference: np.ndarray, target: np.ndarray, dtype: np.dtype[Any]) -> float:
    """Return the largest distance in representable numbers of ``dtype`` between two flat arrays of finite values.

    Complex arrays are compared component by component. Values beyond the range of ``dtype`` count as its largest.

    Args:
        reference: Flat.
        target: Flat, of the same size.
        dtype: A floating-point type, the `coarser` of both.
    """
    if reference.size == 0:
        return 0.0
    if "c" in (reference.dtype.kind, target.dtype.kind):
        reference, target = reference.astype(np.complex128), target.astype(np.complex128)
    keys: list[np.ndarray] = [_rounded(side, dtype) for side in (reference, target)]
    if dtype.itemsize == 1:
        table = _keys_of_bytes(dtype)
        return float(np.abs(table[keys[0].view(np.uint8)] - table[keys[1].view(np.uint8)]).max())
    bits = [key.view(_INTEGER[dtype.itemsize]) for key in keys]
    one, other = (side & _MAGNITUDE[dtype.itemsize] for side in bits)
    return distance_of_bits(one, other, bits[0] ^ bits[1], np.empty_like(one))


def distance_of_bits(reference: np.ndarray, target: np.ndarray, signs: np.ndarray | None, scratch: np.ndarray) -> float:
    """Return the largest distance, given the bits of both magnitudes as signed integers.

    Args:
        reference: Bits of the absolute values, as int16, int32 or int64.
        target: Likewise.
        signs: Exclusive or of the bits of the signed values; negative where the signs differ. None when
            no sign differs. Overwritten.
        scratch: Array of the same type and size. Overwritten.
    """
    # |a - b| <= a + b: including the positions of opposite sign does no harm. Both are >= 0, so nothing overflows.
    np.subtract(reference, target, out=scratch)
    distance = max(int(scratch.max()), -int(scratch.min()))
    if signs is None or signs.min() >= 0:
        return float(distance)
    np.right_shift(signs, 8 * signs.itemsize - 1, out=signs)  # All ones where the signs differ, else zero.
    np.add(reference, target, out=scratch)
    np.bitwise_and(scratch, signs, out=scratch)
    return float(max(distance, int(scratch.view(f"u{scratch.itemsize}").max())))  # Sums may need the sign bit.


def _component(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    if dtype.kind == "c":
        return np.dtype(f"f{dtype.itemsize // 2}")
    return dtype.newbyteorder("=") if dtype.kind not in "USO" and DType.from_numpy(dtype).is_float else None


def _rounded(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return values as ``dtype``, components in a row when complex, saturated when out of range."""
    if values.dtype.kind == "c":
        values = values.view(np.float64)
    if values.dtype == dtype:
        return values
    largest = float(DType.from_numpy(dtype).finfo.max)
    return np.clip(values.astype(np.float64), -largest, largest).astype(dtype)


@functools.cache
def _keys_of_bytes(dtype: np.dtype[Any]) -> np.ndarray:
    """Return, for each bit pattern of a one-byte float type, its signed count of representable numbers from zero."""
    values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
    ranks = np.unique(values[np.isfinite(values)])
    keys = np.searchsorted(ranks, values).astype(np.int32)
    return np.asarray(keys - np.searchsorted(ranks, 0.0), np.int32)
