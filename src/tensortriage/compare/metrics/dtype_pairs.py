"""How a pair of element types is compared: in the type that holds both exactly, and how stored values get into it."""

import functools
from typing import Any

import numpy as np

from tensortriage.compare.metrics import ulp
from tensortriage.compare.metrics.blocks import SCRATCH
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)

SAFE = {F32: (2.0**-42, 2.0**50), F64: (2.0**-400, 2.0**400)}
"""Maxima outside these bounds would make squares overflow, or underflow to an error that is not negligible."""

_EXACT_INTEGERS = (0.0, 2.0**53 - 1)
"""Integers in these bounds are exact in float64."""

_FINITE_HALVES = (SAFE[F32][0], float(np.finfo(np.float16).max))
"""Half-precision bits are widened as if none of them were infinite or NaN (`loading.load`): beyond this, some were."""


@frozen_dataclass
class Lane:
    """The arithmetic for pairs of two element types.

    Attributes:
        work: float32 or float64, holding every value of both types exactly (64-bit integers while they are below
            2**53); None for strings and complex numbers.
        bounds: Range of magnitudes and errors, zero aside, in which the short way is exact.
        bits: Unsigned integer type to compare the memory of both sides with; None when their types differ.
        ulp: Type whose representable numbers are the unit of errors; None for integers, whose unit is 1.
        ulp_shift: Set when the distance in ``ulp`` is the distance of the bits in ``work`` divided by 2 to this power.
        is_text: Whether both are strings.
        is_wide_integer: Whether both are integers and one of them has 64 bits.
    """

    work: np.dtype[Any] | None
    bounds: tuple[float, float]
    bits: np.dtype[Any] | None
    ulp: np.dtype[Any] | None
    ulp_shift: int | None
    is_text: bool = False
    is_wide_integer: bool = False


@functools.cache
def lane(reference: np.dtype[Any], target: np.dtype[Any]) -> Lane | None:
    """Return the lane for two numpy types; None when only one of them is a string.

    Raises:
        UsageError: For a type without ONNX counterpart (``dtype-unknown``).
    """
    reference, target = reference.newbyteorder("="), target.newbyteorder("=")
    kinds = {DType.from_numpy(reference), DType.from_numpy(target)}
    if DType.STRING in kinds:
        return Lane(None, (0.0, 0.0), None, None, None, is_text=True) if len(kinds) == 1 else None
    is_complex = any(kind.numpy.kind == "c" for kind in kinds)
    narrow = all(kind is DType.FLOAT or kind.numpy.itemsize <= 2 for kind in kinds)
    work = None if is_complex else F32 if narrow else F64
    wide = bool(kinds & {DType.INT64, DType.UINT64}) and not is_complex and not any(kind.is_float for kind in kinds)
    bounds = _EXACT_INTEGERS if wide else SAFE[work or F64]
    if DType.FLOAT16 in kinds and work == F32:
        bounds = _FINITE_HALVES
    unit = ulp.coarser(reference, target)
    # A bfloat16 is the upper half of a float32.
    shift = 0 if unit == work else 16 if kinds == {DType.BFLOAT16} else None
    bits = np.dtype(f"u{reference.itemsize}") if reference == target and not is_complex else None
    return Lane(work, bounds, bits, unit, shift, is_wide_integer=wide)


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
        finite: Use a conversion that is faster for float16, and turns non-finite elements into numbers beyond its
            range.
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
