"""Quantization: rounding to integers or float8 is part of the model and happens; scales and products are float64."""

import numpy as np

from tensortriage.engines.reference.kernels.call import Call, Output, kernel
from tensortriage.engines.reference.kernels.casting import convert
from tensortriage.values.dtype import DType


def _spread(values: np.ndarray, x: np.ndarray, axis: int, block: int) -> np.ndarray:
    """Return scales or zero points ready to broadcast over x: one, one per slice of an axis, or one per block."""
    if values.ndim == 0 or values.size == 1:
        return values.reshape(())
    if block:
        return np.repeat(values, block, axis=axis)[tuple(slice(0, n) for n in x.shape)]
    return values.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def quantize(
    x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, to: DType, *, saturate: bool = True
) -> np.ndarray:
    """Return x / scale + zero, rounded to nearest even and brought into the range of an integer or float8 type."""
    scaled = x.astype(np.float64) / scale
    if to.is_float:
        return convert(scaled, to, saturate=saturate)
    shifted = np.rint(scaled) + (0.0 if zero is None else zero.astype(np.float64))
    limits = _range(to)
    return convert(np.clip(shifted, *limits), to)


def _range(to: DType) -> tuple[float, float]:
    signed = to.name.startswith("INT")
    top = 2.0 ** (to.bits - 1) if signed else 2.0**to.bits
    return (-top if signed else 0.0), top - 1.0


@kernel("QuantizeLinear")
def _quantize_linear(call: Call) -> Output:
    """QuantizeLinear(x, y_scale, y_zero_point): saturate(round_half_even(x / y_scale) + y_zero_point).

    One scale for all, one per slice of `axis`, or one per `block_size` elements along it.
    """
    x, axis, block = call[0], call.get("axis", 1), call.get("block_size", 0)
    to = DType(call.get("output_dtype", 0) or DType.UINT8.value)
    zero = None
    if call[2] is not None:
        to, zero = DType.from_numpy(call[2].dtype), _spread(call[2], x, axis, block)
    scale = _spread(call[1], x, axis, block)
    return quantize(x, scale, zero, to, saturate=bool(call.get("saturate", 1)))


@kernel("DequantizeLinear")
def _dequantize_linear(call: Call) -> Output:
    """DequantizeLinear(x, x_scale, x_zero_point): (x - x_zero_point) x_scale; scales as for QuantizeLinear."""
    x, axis, block = call[0], call.get("axis", 1), call.get("block_size", 0)
    wide = x.astype(np.float64)
    if call[2] is not None:
        wide = wide - _spread(call[2], x, axis, block).astype(np.float64)
    return wide * _spread(call[1], x, axis, block)


@kernel("DynamicQuantizeLinear")
def _dynamic_quantize_linear(call: Call) -> Output:
    """DynamicQuantizeLinear(x): y, y_scale, y_zero_point for uint8, of the range of x widened to hold 0."""
    x = call[0]
    low, high = min(0.0, float(np.min(x, initial=0.0))), max(0.0, float(np.max(x, initial=0.0)))
    scale = np.array((high - low) / 255.0 or 1.0)
    zero = np.asarray(np.clip(np.rint(-low / scale), 0, 255)).astype(np.uint8)
    return quantize(x, scale, zero, DType.UINT8), scale, zero


@kernel("QLinearMatMul")
def _qlinear_matmul(call: Call) -> Output:
    """QLinearMatMul(a, a_scale, a_zero_point, b, ..., y_zero_point): the product of the dequantized, quantized.

    a [.., m, k] with scales per tensor or per row, b [.., k, n] per tensor or per column.
    """
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = call.inputs[:8]
    left = (a.astype(np.float64) - _rows(a_zero).astype(np.float64)) * _rows(a_scale)
    right = (b.astype(np.float64) - b_zero.astype(np.float64)) * b_scale
    return quantize(np.matmul(left, right), y_scale, y_zero, DType.from_numpy(y_zero.dtype))


def _rows(values: np.ndarray) -> np.ndarray:
    """Return one number, or one per row of the left matrix."""
    return values.reshape(()) if values.size == 1 else values[..., None] if values.ndim == 1 else values
