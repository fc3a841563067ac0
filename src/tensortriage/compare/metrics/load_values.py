"""Values as they are stored, in the type that they are computed in: the stored array itself, or a buffer."""

import functools
from typing import Any

import numpy as np

from tensortriage.compare.metrics.blocks import SCRATCH
from tensortriage.compare.metrics.dtype_pairs import F32
from tensortriage.values.dtype import DType

_BF16 = DType.BFLOAT16.numpy
_F16 = DType.FLOAT16.numpy

_HALF_SHIFT = 13
_HALF_BITS = np.int32(np.array(0x8FFFE000, np.uint32).view(np.int32))
_HALF_SCALE = np.float32(2.0**112)


def load(values: np.ndarray, work: np.dtype[Any], role: str, *, finite: bool = False) -> np.ndarray:
    """Return a block in the work type: itself, or converted into a buffer.

    Args:
        values: Flat and contiguous.
        work: float32 or float64, holding every value exactly.
        role: Names the buffer.
        finite: Take a way that is faster for float16, and turns what is not finite into numbers beyond its range.
    """
    if values.dtype == work:
        return values
    buffer = SCRATCH.get(role, work, values.size)
    if finite and values.dtype == _F16 and work == F32:
        _widen_halves(values, buffer)
        return buffer
    table = _values_of_bits(values.dtype, work)
    if table is None:
        np.copyto(buffer, values, casting="unsafe")
    else:
        np.take(table, values.view(f"u{values.itemsize}"), out=buffer, mode="clip")
    return buffer


def in_float(values: np.ndarray) -> np.ndarray:
    """Return a flat array of real numbers in float32 when that holds its type, integers and doubles in float64.

    Args:
        values: Flat; any real type of numpy's or ml_dtypes.
    """
    kind = DType.from_numpy(values.dtype)
    if not kind.is_float or kind is DType.DOUBLE:
        return values.astype(np.float64)
    return values.astype(np.float32) if kind in (DType.FLOAT, DType.BFLOAT16) else load(values, F32, "in_float").copy()


def _widen_halves(values: np.ndarray, buffer: np.ndarray) -> None:
    """Write finite float16 values as float32: exponent and mantissa in place, then the difference of the biases.

    Four sweeps that numpy vectorises, half the time of a table; subnormal numbers come out right as well, because they
    are subnormal on both sides of the multiplication.
    """
    bits = buffer.view(np.int32)
    np.copyto(bits, values.view(np.int16))
    np.left_shift(bits, _HALF_SHIFT, out=bits)
    np.bitwise_and(bits, _HALF_BITS, out=bits)  # Of the sign, spread over 17 bits, one is kept.
    np.multiply(buffer, _HALF_SCALE, out=buffer)


@functools.cache
def _values_of_bits(dtype: np.dtype[Any], work: np.dtype[Any]) -> np.ndarray | None:
    """Return the value of every bit pattern of a small type that numpy converts slowly; None for the other types."""
    if dtype.itemsize > 2 or dtype == _BF16 or dtype.kind in "biu":
        return None
    return np.asarray(np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype).astype(work))
