"""How a pair of element types is compared: the type that holds both exactly, and what errors are counted in."""

import dataclasses
import functools
from typing import Any

import numpy as np

from tensortriage.compare.metrics import ulp
from tensortriage.values.dtype import DType

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)

SAFE = {F32: (2.0**-42, 2.0**50), F64: (2.0**-400, 2.0**400)}
"""Maxima outside these bounds would make squares overflow, or underflow to an error that is not negligible."""

_EXACT_INTEGERS = (0.0, 2.0**53 - 1)
"""Integers whose float64 is in these bounds are that float64."""

_FINITE_HALVES = (SAFE[F32][0], float(np.finfo(np.float16).max))
"""Half-precision bits are widened as if none of them were infinite or NaN (`loading.load`): beyond this, some were."""


@dataclasses.dataclass(frozen=True, slots=True)
class Lane:
    """How pairs of two element types are computed.

    Attributes:
        work: float32 or float64, holding every value of both types exactly (64-bit integers while they are below
            2**53); None for strings and complex numbers.
        bounds: What the maxima of magnitudes and errors must be between, or zero, for the short way.
        bits: Unsigned integer type to compare the memory of both sides with; None when their types differ.
        ulp: Type whose representable numbers errors are counted in; None for integers, whose unit is 1.
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
