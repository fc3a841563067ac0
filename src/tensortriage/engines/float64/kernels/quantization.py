"""Quantization: rounding to integers or float8 is part of the model and happens; products are exact or float32."""

import numpy as np

from tensortriage.engines.float64.arithmetic import EXACT, Arithmetic
from tensortriage.engines.float64.kernels.call import Call, Output, kernel
from tensortriage.engines.float64.kernels.casting import convert
from tensortriage.values.dtype import DType


def _spread(values: np.ndarray, x: np.ndarray, axis: int, block: int) -> np.ndarray:
    """Return scales or zero points ready to broadcast over x: one, one per slice of an axis, or one per block."""
    if values.ndim == 0 or values.size == 1:
        return values.reshape(())
    if block:
        return np.repeat(values, block, axis=axis)[tuple(slice(0, n) for n in x.shape)]
    return values.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def quantize(
    x: np.ndarray,
    scale: np.ndarray,
    zero: np.ndarray | None,
    to: DType,
    *,
    saturate: bool = True,
    arithmetic: Arithmetic = EXACT,
) -> np.ndarray:
    """Return ``saturate(round(x / scale) + zero)``, ties rounded to even (ONNX operator QuantizeLinear).

    Args:
        x: Floating-point array.
        scale: Positive scales that broadcast over x.
        zero: Zero points in the same form; None for 0. Not used for float8.
        to: An integer or float8 type.
        saturate: For float8, whether values out of range become the largest one instead of NaN or infinity.
        arithmetic: How the quotient is computed: exactly, or in float32 as engines do.

    Returns:
        An array of x's shape, as `convert` returns the type; float64 where quantizers do not round.
    """
    scaled = x.astype(np.float64) / scale
    if arithmetic.sums.accumulator is not None:
        scaled = _in_float32(x, scale, scaled, zero, arithmetic.amplify)
    if to.is_float:
        if not arithmetic.stored.rounds:
            return arithmetic.stored.quantized(scaled, (-float(to.finfo.max), float(to.finfo.max)))
        return convert(scaled, to, saturate=saturate)
    offset = 0.0 if zero is None else zero.astype(np.float64)
    if not arithmetic.stored.rounds:
        return arithmetic.stored.quantized(scaled + offset, _range(to), offset, scale.astype(np.float64))
    return convert(np.clip(np.rint(scaled) + offset, *_range(to)), to)


def _in_float32(
    x: np.ndarray, scale: np.ndarray, exact: np.ndarray, zero: np.ndarray | None, amplify: int
) -> np.ndarray:
    """Return x / scale as engines make it: a product with the reciprocal, to which the zero point is added, in float32.

    Where the sum is near a half it falls on the other side as soon as the distance is below the last place of the sum,
    not of x / scale: OpenVINO's FakeQuantize does so.
    """
    with np.errstate(all="ignore"):
        product = x.astype(np.float32) * (np.float32(1.0) / scale.astype(np.float32))
        offset = np.float32(0.0) if zero is None else zero.astype(np.float32)
        moved = (product + offset).astype(np.float64) - offset
        return np.where(np.isfinite(moved), exact + amplify * (moved - exact), exact)


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
    return quantize(x, scale, zero, to, saturate=bool(call.get("saturate", 1)), arithmetic=call.arithmetic)


@kernel("DequantizeLinear")
def _dequantize_linear(call: Call) -> Output:
    """DequantizeLinear(x, x_scale, x_zero_point): (x - x_zero_point) x_scale; scales as for QuantizeLinear."""
    x, axis, block = call[0], call.get("axis", 1), call.get("block_size", 0)
    wide = call.arithmetic.stored.dequantized(x)
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
    return quantize(x, scale, zero, DType.UINT8, arithmetic=call.arithmetic), scale, zero


@kernel("QLinearMatMul")
def _qlinear_matmul(call: Call) -> Output:
    """QLinearMatMul(a, a_scale, a_zero_point, b, ..., y_zero_point): the product of the dequantized, quantized.

    a [.., m, k] with scales per tensor or per row, b [.., k, n] per tensor or per column.
    """
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = call.inputs[:8]
    stored = call.arithmetic.stored
    left = (stored.dequantized(a) - _rows(a_zero).astype(np.float64)) * _rows(a_scale)
    right = (stored.dequantized(b) - b_zero.astype(np.float64)) * b_scale
    to = DType.from_numpy(y_zero.dtype)
    return quantize(np.matmul(left, right), y_scale, y_zero, to, arithmetic=call.arithmetic)


def _rows(values: np.ndarray) -> np.ndarray:
    """Return one number, or one per row of the left matrix."""
    return values.reshape(()) if values.size == 1 else values[..., None] if values.ndim == 1 else values
