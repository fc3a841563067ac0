"""Cast in a world where every real floating-point type is float64 and only the narrow formats round."""

import numpy as np

from tensortriage.engines.float64.kernels.call import Call, Output, kernel
from tensortriage.values.dtype import DType

WIDE = frozenset({DType.FLOAT, DType.FLOAT16, DType.BFLOAT16, DType.DOUBLE})
"""Types that float64 represents here."""


def to_float64(array: np.ndarray) -> np.ndarray:
    """Return the array as kernels want it: float64 for the wide floating-point types, complex128, else unchanged.

    Args:
        array: Any shape, any element type of ONNX.
    """
    if array.dtype.kind in "USOiub" and array.dtype.isbuiltin == 1:
        return array
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64, copy=False) if DType.from_numpy(array.dtype) in WIDE else array


def convert(array: np.ndarray, to: DType, *, saturate: bool = True, scale_rounding: str = "up") -> np.ndarray:
    """Return the array as another type: exact float64 for the wide ones, rounded to nearest even for the narrow ones.

    Args:
        array: Any array.
        to: Wanted type.
        saturate: For float8 results, whether values out of range become the largest one instead of NaN or infinity.
        scale_rounding: For float8e8m0 results, which power of two a value between two becomes: up, down or nearest.

    Raises:
        ValueError: For conversions to strings, whose digits depend on the original type.
    """
    if to is DType.STRING:
        if array.dtype.kind in "OU":
            return array
        raise ValueError("a number cannot be cast to a string in float64")
    if to in WIDE:
        return array.astype(np.float64)
    if array.dtype.kind in "OU":
        array = array.astype(np.float64)
    if to is DType.BOOL:
        return np.asarray(array != array.dtype.type(0))
    if to is DType.FLOAT8E8M0:
        return _power_of_two(array.astype(np.float64), scale_rounding).astype(to.numpy)
    if to.is_float:
        wide = array.astype(np.float64)
        if saturate:
            largest = float(to.finfo.max)
            wide = np.where(np.isnan(wide), wide, np.clip(wide, -largest, largest))
        return wide.astype(to.numpy)
    if to.bits < 8:
        wide = np.trunc(array.astype(np.float64)).astype(np.int64)
        return wide.astype(np.int8).astype(to.numpy)
    return array.astype(np.float64).astype(to.numpy) if array.dtype.isbuiltin != 1 else array.astype(to.numpy)


def _power_of_two(wide: np.ndarray, rounding: str) -> np.ndarray:
    """Return the power of two that float8e8m0, which has neither sign nor zero, holds for each value."""
    fraction, exponent = np.frexp(np.abs(wide))  # fraction in [0.5, 1)
    above = {"up": fraction > 0.5, "down": np.zeros(wide.shape, bool), "nearest": fraction >= 0.75}[rounding]
    exponent = np.where(wide == 0, -127, np.clip(exponent - 1 + above, -127, 127))
    return np.where(np.isfinite(wide), np.ldexp(1.0, exponent), np.nan)


@kernel("Cast", "CastLike")
def _cast(call: Call) -> Output:
    """Cast(input), CastLike(input, target_type): each element converted; `saturate` and `round_mode` bind fp8 only."""
    to = DType(call.get("to")) if call.op_type == "Cast" else DType.from_numpy(call[1].dtype)
    saturate = bool(call.get("saturate", 1))
    return convert(call[0], to, saturate=saturate, scale_rounding=call.get("round_mode", "up"))
