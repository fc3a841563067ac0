"""Rounding to the number formats of accelerators, to nearest or toward zero; the numbers stay float32 or wider.

TF32 keeps 10 bits of a float32's mantissa, bfloat16 keeps 7 (NVIDIA A100 whitepaper; both have float32's exponent).
Tensor cores truncate where they add products (Fasi, Higham, Mikaitis, Pranesh: "Numerical behavior of NVIDIA tensor
cores", PeerJ CS 2021), hence the rounding toward zero.
"""

import enum

import numpy as np


class SimulatedFormat(enum.Enum):
    """A number format; the value is the word in options."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"


_DROPPED_BITS = {SimulatedFormat.TF32: 13, SimulatedFormat.FP16: 13, SimulatedFormat.BF16: 16}
"""Low bits of a float32 that the format lacks."""

SMALLEST_NORMAL = {
    SimulatedFormat.FP32: 2.0**-126,
    SimulatedFormat.TF32: 2.0**-126,
    SimulatedFormat.BF16: 2.0**-126,
    SimulatedFormat.FP16: 2.0**-14,
}


def rounded(array: np.ndarray, to: SimulatedFormat, *, toward_zero: bool = False) -> np.ndarray:
    """Round to a format.

    Args:
        array: float32 or float64.
        to: The format.
        toward_zero: Truncate instead of rounding to the nearest, ties to even.

    Returns:
        An array of the same shape; float64 for fp64, otherwise float32 that the format holds exactly.
    """
    if to is SimulatedFormat.FP64:
        return array.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if to is SimulatedFormat.FP16 and toward_zero:
            return _not_beyond(array.astype(np.float16), array).astype(np.float32)
        single = array.astype(np.float32)
        if toward_zero:
            single = _not_beyond(single, array)
        if to is SimulatedFormat.FP16:
            return _to_half(single)
    if to is SimulatedFormat.FP32:
        return single
    return _without_low_bits(single, _DROPPED_BITS[to], toward_zero=toward_zero)


def flushed(array: np.ndarray, held_in: SimulatedFormat) -> np.ndarray:
    """Return the array with numbers below the format's smallest normal one as zero."""
    return np.where(np.abs(array) < SMALLEST_NORMAL[held_in], np.zeros((), array.dtype), array)


def _to_half(single: np.ndarray) -> np.ndarray:
    """Round float32 to fp16; several times faster than numpy's own conversion there and back."""
    size = np.abs(single)
    result = _without_low_bits(single, _DROPPED_BITS[SimulatedFormat.FP16], toward_zero=False)
    small = size < SMALLEST_NORMAL[SimulatedFormat.FP16]
    if small.any():  # multiples of 2^-24, which is the last bit of 0.75
        result = np.where(small, (single + np.float32(0.75)) - np.float32(0.75), result)
    return np.where(size >= 65520.0, np.copysign(np.float32(np.inf), single), result)


def _not_beyond(nearest: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Step back toward zero where rounding to nearest went away from it; an overflow becomes the largest number."""
    away = np.abs(nearest.astype(np.float64)) > np.abs(exact.astype(np.float64))
    return np.where(away, np.nextafter(nearest, np.zeros((), nearest.dtype)), nearest)


def _without_low_bits(single: np.ndarray, bits: int, *, toward_zero: bool) -> np.ndarray:
    codes = np.array(single, np.float32, order="C").view(np.uint32)
    if not toward_zero:
        odd = codes >> np.uint32(bits)
        odd &= np.uint32(1)
        odd += np.uint32((1 << (bits - 1)) - 1)
        codes += odd
    codes &= np.uint32(~((1 << bits) - 1) & 0xFFFFFFFF)
    finite = np.isfinite(single)
    kept = codes.view(np.float32)
    return kept if finite.all() else np.where(finite, kept, single)
