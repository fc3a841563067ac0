"""Convolutions, as matrix products (`tensortriage.engines.float64.kernels.sliding_windows.columns`)."""

import numpy as np

from tensortriage.engines.float64.accumulation import EXACT_SUMS
from tensortriage.engines.float64.kernels.call import Call, Output, kernel
from tensortriage.engines.float64.kernels.quantization import quantize
from tensortriage.engines.float64.kernels.sliding_windows import winograd
from tensortriage.engines.float64.kernels.sliding_windows.columns import correlate
from tensortriage.engines.float64.kernels.sliding_windows.windows import Windows, last_axes
from tensortriage.engines.float64.stored_numbers import AS_STORED
from tensortriage.values.dtype import DType


def convolve(call: Call, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the convolution of x (N, C, ...) with weight (M, C / group, ...), without bias, float64.

    Args:
        call: The node, for strides, pads, dilations, groups and the arithmetic.
        x: Input, float64.
        weight: Kernels, float64.
    """
    windows = Windows.of(call, x.shape[2:], call.get("kernel_shape") or weight.shape[2:])
    groups, arithmetic = call.get("group", 1), call.arithmetic
    if arithmetic.winograd and winograd.fits(windows, groups):
        return winograd.correlate(x, weight, windows, arithmetic.winograd, arithmetic.products)
    return correlate(x, weight, windows, groups, arithmetic.products)


@kernel("Conv")
def _conv(call: Call) -> Output:
    """Conv: ``y[n, m, p] = bias[m] + sum over c, t of W[m, c, t] * X[n, c, stride * p + dilation * t - pad]``.

    X (N, C, spatial...), W (M, C / group, taps...), B (M) or none; y (N, M, windows...).
    """
    return _with_bias(convolve(call, call[0], call[1]), call[2])


@kernel("ConvInteger")
def _conv_integer(call: Call) -> Output:
    """ConvInteger: Conv of (x - x_zero_point) with (w - w_zero_point), int32; float64 where quantizers do not round.

    x (N, C, spatial...), w (M, C / group, taps...), zero points scalar or, for w, (M).
    """
    # Zero points and 8-bit products are small whole numbers: float64 holds their sums exactly, and faster than int32.
    stored = call.arithmetic.stored
    x, weight = stored.dequantized(call[0]), stored.dequantized(call[1])
    if call[2] is not None:
        x = x - call[2].astype(np.float64).reshape(())
    if call[3] is not None:
        weight = weight - _per_kernel(call[3].astype(np.float64), weight.ndim)
    windows = Windows.of(call, x.shape[2:], call.get("kernel_shape") or weight.shape[2:])
    total = correlate(x, weight, windows, call.get("group", 1), EXACT_SUMS)
    return total.astype(np.int32) if stored == AS_STORED else total


def _per_kernel(values: np.ndarray, rank: int) -> np.ndarray:
    """Return one number for all kernels, or one per kernel, ready to broadcast over weights of some rank."""
    return values.reshape(()) if values.size == 1 else values.reshape(-1, *[1] * (rank - 1))


@kernel("QLinearConv")
def _qlinear_conv(call: Call) -> Output:
    """QLinearConv: ``y = saturate(round(conv * x_scale * w_scale / y_scale) + y_zero_point)``, ties to even.

    Inputs x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B; those of w scalar or (M).
    """
    x, x_scale, x_zero, weight, w_scale, w_zero, y_scale, y_zero = call.inputs[:8]
    # Zero points and 8-bit products are small whole numbers: float64 holds their sums exactly.
    stored = call.arithmetic.stored
    wide = stored.dequantized(weight) - _per_kernel(w_zero.astype(np.float64), weight.ndim)
    windows = Windows.of(call, x.shape[2:], call.get("kernel_shape") or weight.shape[2:])
    shifted = stored.dequantized(x) - float(x_zero.reshape(()))
    total = correlate(shifted, wide, windows, call.get("group", 1), EXACT_SUMS)
    total = _with_bias(total, None if call[8] is None else stored.dequantized(call[8]))
    real = total * _per_kernel((w_scale * float(np.reshape(x_scale, ()))).reshape(-1), total.ndim - 1)
    to = DType.from_numpy(y_zero.dtype)
    return quantize(real, y_scale.reshape(()), y_zero.reshape(()), to, arithmetic=call.arithmetic)


def _with_bias(total: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    return total if bias is None else total + bias.reshape(-1, *[1] * (total.ndim - 2))


@kernel("ConvTranspose")
def _conv_transpose(call: Call) -> Output:
    """ConvTranspose: each X[n, c, p] adds X * W[c, m, t] to y[n, m, stride * p + dilation * t - pad].

    X (N, C, spatial...), W (C, M / group, taps...), B (M) or none; y (N, M, ...). A sum over channels goes through the
    accumulator, and so does the running sum over taps.
    """
    x, weight = call[0], call[1]
    groups, rank = call.get("group", 1), call[0].ndim - 2
    kernel_shape = weight.shape[2:]
    strides = call.get("strides") or [1] * rank
    dilations = call.get("dilations") or [1] * rank
    extra = call.get("output_padding") or [0] * rank
    full = [
        (n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(x.shape[2:], strides, kernel_shape, dilations, strict=True)
    ]
    n, c, m = x.shape[0], x.shape[1], weight.shape[1] * groups
    sums = call.arithmetic.products
    taps = np.moveaxis(weight.reshape(groups, c // groups, -1), 1, 2)  # (groups, M / groups * taps, C / groups)
    flat = x.reshape(n, groups, c // groups, -1)
    spread = sums.matmul(np.ascontiguousarray(taps), flat).reshape(n, m, *kernel_shape, *x.shape[2:])
    total = np.zeros((n, m, *(f + e for f, e in zip(full, extra, strict=True))))
    for place in np.ndindex(*kernel_shape):
        starts = [o * d for o, d in zip(place, dilations, strict=True)]
        cut = [slice(b, b + (i - 1) * s + 1, s) for b, i, s in zip(starts, x.shape[2:], strides, strict=True)]
        view = last_axes(total, cut)
        view[...] = sums.kept(view + spread[(slice(None), slice(None), *place)])
    pads = _transposed_pads(call, x.shape[2:], strides, full, extra)
    total = np.pad(total, ((0, 0), (0, 0), *((max(0, -low), max(0, -high)) for low, high in pads)))
    crop = [slice(max(0, low), size - max(0, high)) for (low, high), size in zip(pads, total.shape[2:], strict=True)]
    return _with_bias(last_axes(total, crop), call[2])


def _transposed_pads(
    call: Call, spatial: tuple[int, ...], strides: list[int], full: list[int], extra: list[int]
) -> list[tuple[int, int]]:
    rank, auto = len(spatial), call.get("auto_pad", "NOTSET")
    wanted = call.get("output_shape")
    if auto.startswith("SAME") and not wanted:
        wanted = [n * s for n, s in zip(spatial, strides, strict=True)]
    if not wanted:
        flat = call.get("pads") or [0] * (2 * rank)
        return [(0, 0)] * rank if auto == "VALID" else [(flat[i], flat[i + rank]) for i in range(rank)]
    totals = [f + e - w for f, e, w in zip(full, extra, list(wanted)[-rank:], strict=True)]
    if auto == "SAME_UPPER":
        return [(t // 2, t - t // 2) for t in totals]
    return [(t - t // 2, t // 2) for t in totals]
