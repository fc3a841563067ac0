"""Right numbers in memory, read as another type: integers as floats, half precision as single, 64 bits as 32."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensortriage.values.dtype import DType

EQUAL_IN_FP32 = 3e-6
"""Relative error of functions that two libraries compute in fp32."""
_FLOATS = {DType.FLOAT16: 2e-3, DType.BFLOAT16: 8e-3, DType.DOUBLE: EQUAL_IN_FP32, DType.FLOAT: EQUAL_IN_FP32}
"""Types that engines write, with the relative error of numbers rounded to them: four times half a unit in the last
place."""
_WHOLE = (DType.INT32, DType.INT64, DType.UINT8, DType.INT8, DType.UINT32, DType.INT16, DType.UINT16, DType.UINT64)
_CHANCE_BITS = 16.0
"""By so many bits whole numbers must be less likely to be equal by chance than any."""


def rms_error(right: np.ndarray, made: np.ndarray) -> float:
    """Return the RMS error of numbers as a share of the right ones' RMS; inf where these are 0 or not finite."""
    with np.errstate(over="ignore"):  # of exponentials
        size, off = (float(np.sqrt(np.mean(numbers**2))) for numbers in (right, made - right))
    return off / size if 0.0 < size < np.inf else np.inf


def stored_type(right: np.ndarray, made: np.ndarray) -> tuple[str, str] | None:
    """Return the type in which the bytes of an array are the right numbers, of as many as fit, and that it is read as.

    Args:
        right: The right numbers, of any shape and real type.
        made: The array, of any real type: as it was read, or widened without loss afterwards.

    Returns:
        Names of both types; None where the bytes are the right numbers in no other type than the array's.
    """
    if right.dtype.kind not in "fiubV" or made.dtype.kind not in "fiu":  # V: bfloat16, and narrower ones
        return None
    if right.shape == made.shape and np.array_equal(right, made):
        return None
    exact = np.ascontiguousarray(right).ravel().astype(np.float64)
    for read in _forms(np.ascontiguousarray(made).ravel()):
        for kind in sorted((*_FLOATS, *_WHOLE), key=lambda each: each.numpy != right.dtype):
            stored = kind.numpy
            if stored == read.dtype or read.nbytes % stored.itemsize:
                continue
            with np.errstate(invalid="ignore"):  # of bytes that are no numbers of this type
                numbers = read.view(stored)[: exact.size].astype(np.float64)
            if _equal(exact[: numbers.size], numbers, _FLOATS.get(kind, 0.0)):
                held = DType.BOOL if right.dtype == np.bool_ and stored.itemsize == 1 else kind
                return held.label, DType.from_numpy(read.dtype).label
    return None


def _forms(made: np.ndarray) -> Iterator[np.ndarray]:
    """Yield an array, and in each narrower type that holds all of its numbers."""
    yield made
    narrower = (kind.numpy for kind in (*_FLOATS, *_WHOLE))
    for kind in (each for each in narrower if each.kind == made.dtype.kind and each.itemsize < made.dtype.itemsize):
        with np.errstate(all="ignore"):
            form: np.ndarray[Any, Any] = made.astype(kind)
            if np.array_equal(form.astype(made.dtype), made, equal_nan=made.dtype.kind == "f"):
                yield form


def _equal(right: np.ndarray, numbers: np.ndarray, rounding: float) -> bool:
    if not right.size or not np.isfinite(numbers).all() or not (width := float(np.ptp(right))):
        return False
    if rounding:
        return rms_error(right, numbers) <= rounding
    return bool(np.array_equal(right, numbers)) and right.size * np.log2(1.0 + width) >= _CHANCE_BITS
