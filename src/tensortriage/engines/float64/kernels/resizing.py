"""Resize and Upsample: interpolation is separable, so each axis is one small matrix applied to the input."""

import math
from typing import Any

import numpy as np

from tensortriage.engines.float64.kernels.call import Call, Output, kernel


@kernel("Resize", "Upsample")
def _resize(call: Call) -> Output:
    """Resize(X, roi, scales, sizes), Upsample(X, scales): X interpolated along each axis in turn.

    `mode` nearest, linear or cubic; `coordinate_transformation_mode` gives the place in X of an element of Y.
    """
    x = call[0]
    axes = [axis % x.ndim for axis in call.get("axes") or range(x.ndim)]
    scales, sizes, roi = _request(call, [x.shape[axis] for axis in axes])
    y: np.ndarray = x
    outside = np.zeros((1,) * x.ndim, bool)
    for i, axis in enumerate(axes):
        start, end = (float(roi[i]), float(roi[i + len(axes)])) if roi is not None else (0.0, 1.0)
        if sizes[i] == x.shape[axis] and scales[i] == 1.0 and (start, end) == (0.0, 1.0):
            continue
        places = _places(_transformation(call), x.shape[axis], sizes[i], scales[i], (start, end), np.float64)
        # The nearest element, and the elements outside, are decisions: made in float32, as engines make them. The
        # scale 2.8 puts a coordinate on a tie there, but not in float64.
        decided = _places(_transformation(call), x.shape[axis], sizes[i], scales[i], (start, end), np.float32)
        if _transformation(call) == "tf_crop_and_resize":
            beyond = (decided < 0) | (decided > x.shape[axis] - 1)
            outside = outside | beyond.reshape([-1 if j == axis else 1 for j in range(x.ndim)])
        if call.get("mode", "nearest") == "nearest":
            y = np.take(y, _nearest(call, decided, x.shape[axis]), axis)
        else:
            weights = _weights(call, places, x.shape[axis], scales[i])
            y = np.moveaxis(np.tensordot(weights, y, (1, axis)), 0, axis)
    if outside.any():
        y = np.where(outside, call.get("extrapolation_value", 0.0), y)
    return y.astype(x.dtype)


def _request(call: Call, shape: list[int]) -> tuple[list[float], list[int], np.ndarray | None]:
    """Return scale and size per resized axis, and the region of interest."""
    if call.op_type == "Upsample" or call.version < 11:
        given = call.get("scales") if call.version < 9 else call[1]
        scales = [float(scale) for scale in given]
        return scales, _scaled(shape, scales), None
    roi = call[1] if call[1] is not None and call[1].size else None
    if call[2] is not None and call[2].size:
        scales = [float(scale) for scale in call[2]]
        return scales, _scaled(shape, scales), roi
    sizes = [int(size) for size in call[3]]
    scales = [size / have for size, have in zip(sizes, shape, strict=True)]
    policy = call.get("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        scale = min(scales) if policy == "not_larger" else max(scales)
        scales = [scale] * len(shape)
        sizes = [math.floor(scale * have + 0.5) for have in shape]
    return scales, sizes, roi


def _scaled(shape: list[int], scales: list[float]) -> list[int]:
    # In float32, as engines do: 10 * float32(0.7) is 7 there and below 7 in float64.
    return [int(np.floor(np.float32(have) * np.float32(scale))) for have, scale in zip(shape, scales, strict=True)]


def _transformation(call: Call) -> str:
    if call.op_type == "Upsample" or call.version < 11:
        return "asymmetric"
    return str(call.get("coordinate_transformation_mode", "half_pixel"))


def _places(
    mode: str, have: int, want: int, scale: float, region: tuple[float, float], dtype: type[np.floating[Any]]
) -> np.ndarray:
    """Return for each output index its coordinate in the input (operator specification of Resize)."""
    i = np.arange(want, dtype=dtype)
    ratio, start, end, half = dtype(scale), dtype(region[0]), dtype(region[1]), dtype(0.5)
    places: np.ndarray
    if mode == "asymmetric":
        places = i / ratio
    elif mode == "tf_half_pixel_for_nn":
        places = (i + half) / ratio
    elif mode == "align_corners":
        places = i * (have - 1) / max(want - 1, 1)
    elif mode == "tf_crop_and_resize" and want == 1:
        places = (i + 1) * half * (start + end) * (have - 1)
    elif mode == "tf_crop_and_resize":
        places = start * (have - 1) + i * (end - start) * (have - 1) / (want - 1)
    elif mode == "pytorch_half_pixel" and want == 1:
        places = i
    else:
        offset = dtype(have) * half * (1 - want / (ratio * have)) if mode == "half_pixel_symmetric" else dtype(0)
        places = offset + (i + half) / ratio - half
    return places


def _weights(call: Call, places: np.ndarray, have: int, scale: float) -> np.ndarray:
    """Return the interpolation matrix, shape (outputs, inputs)."""
    mode = call.get("mode")
    stretch = max(1.0, 1.0 / scale) if call.get("antialias", 0) else 1.0
    reach = 2.0 if mode == "cubic" else 1.0
    first = np.floor(places - reach * stretch).astype(np.int64)
    taps = first[:, None] + np.arange(int(2 * reach * stretch) + 3)
    distance = np.abs(places[:, None] - taps) / stretch
    weights = (
        cubic_weight(distance, call.get("cubic_coeff_a", -0.75)) if mode == "cubic" else np.maximum(0.0, 1.0 - distance)
    )
    if call.get("exclude_outside", 0):
        weights = np.where((taps >= 0) & (taps < have), weights, 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    matrix = np.zeros((places.size, have))
    rows = np.broadcast_to(np.arange(places.size)[:, None], taps.shape)
    np.add.at(matrix, (rows, np.clip(taps, 0, have - 1)), weights)
    return matrix


def cubic_weight(distance: np.ndarray, a: float) -> np.ndarray:
    """Return the cubic convolution kernel (Keys 1981, equation 4 with free parameter a).

    Args:
        distance: From the sample in units of samples, not negative.
        a: Parameter; ONNX's default is -0.75.
    """
    near = ((a + 2.0) * distance - (a + 3.0)) * distance**2 + 1.0
    far = ((a * distance - 5.0 * a) * distance + 8.0 * a) * distance - 4.0 * a
    return np.where(distance <= 1.0, near, np.where(distance < 2.0, far, 0.0))


def _nearest(call: Call, places: np.ndarray, have: int) -> np.ndarray:
    # What Upsample and the first Resize did; with asymmetric coordinates.
    default = "floor" if call.op_type == "Upsample" or call.version < 11 else "round_prefer_floor"
    rounding = call.get("nearest_mode", default)
    if rounding.startswith("round"):
        rounding, places = ("ceil", places - 0.5) if rounding == "round_prefer_floor" else ("floor", places + 0.5)
    picks = np.floor(places) if rounding == "floor" else np.ceil(places)
    chosen: np.ndarray = np.clip(picks, 0, have - 1).astype(np.int64)
    return chosen
