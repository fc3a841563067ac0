"""Sampling grids and window functions."""

import itertools

import numpy as np

from tensortriage.engines.float64.kernels.call import Call, Output, kernel
from tensortriage.engines.float64.kernels.casting import convert
from tensortriage.engines.float64.kernels.resizing import cubic_weight
from tensortriage.values.dtype import DType

_CUBIC_COEFFICIENT = -0.75


@kernel("AffineGrid")
def _affine_grid(call: Call) -> Output:
    """AffineGrid(theta, size): the places [N, (D,) H, W, 2 or 3] of an output's elements, moved by theta.

    theta is [N, 2, 3] or [N, 3, 4]; -1 and 1 are the centres of the corners with `align_corners`, their edges without.
    """
    theta, sizes = call[0], [int(size) for size in call[1][2:]]
    lines = []
    for size in sizes:
        if call.get("align_corners", 0):
            lines.append(np.linspace(-1.0, 1.0, size) if size > 1 else np.zeros(1))
        else:
            lines.append((2.0 * np.arange(size) + 1.0) / size - 1.0)
    planes = np.meshgrid(*lines, indexing="ij")[::-1]  # coordinates come as (x, y, z), axes as (depth, height, width)
    points = np.stack([*planes, np.ones_like(planes[0])], axis=-1)
    grid = points.reshape(-1, len(sizes) + 1) @ np.swapaxes(theta, 1, 2)
    return grid.reshape(theta.shape[0], *sizes, len(sizes))


@kernel("GridSample")
def _grid_sample(call: Call) -> Output:
    """GridSample(X, grid): X [N, C, (D,) H, W] interpolated at the places of grid [N, .., 2 or 3], from -1 to 1."""
    x, grid = call[0], call[1]
    spatial = x.shape[2:]
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(call.get("mode", "linear"), call.get("mode", "linear"))
    padding, corners = call.get("padding_mode", "zeros"), bool(call.get("align_corners", 0))
    axes = []
    for axis, size in enumerate(spatial):
        place = grid[..., len(spatial) - 1 - axis]
        place = (place + 1.0) / 2.0 * (size - 1) if corners else ((place + 1.0) * size - 1.0) / 2.0
        if mode != "cubic":
            place = _inside(place, size, padding, corners)
        axes.append(_taps(place, size, mode, padding, corners))
    total = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    rows = np.arange(x.shape[0]).reshape(-1, *[1] * (grid.ndim - 2))
    for combination in itertools.product(*axes):
        weight = np.ones(grid.shape[:-1])
        for _, factor in combination:
            weight = weight * factor
        picked = np.moveaxis(x, 1, -1)[(rows, *(index for index, _ in combination))]
        total += np.moveaxis(picked * weight[..., None], -1, 1)
    return total


def _taps(place: np.ndarray, size: int, mode: str, padding: str, corners: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the elements of one axis that a coordinate draws on: index and weight each."""
    if mode == "nearest":
        taps = [(np.rint(place), np.ones(place.shape))]
    else:
        first = np.floor(place)
        offsets = range(-1, 3) if mode == "cubic" else range(2)
        distances = [(offset, np.abs(place - first - offset)) for offset in offsets]
        weight = (lambda d: cubic_weight(d, _CUBIC_COEFFICIENT)) if mode == "cubic" else (lambda d: 1.0 - d)
        taps = [(first + offset, weight(distance)) for offset, distance in distances]
    found = []
    for index, factor in taps:
        within = _inside(index, size, padding, corners)
        outside = (within < 0) | (within > size - 1)
        found.append((np.clip(within, 0, size - 1).astype(np.int64), np.where(outside, 0.0, factor)))
    return found


def _inside(place: np.ndarray, size: int, padding: str, corners: bool) -> np.ndarray:
    """Return coordinates moved inside an axis by the padding mode; unchanged for zeros."""
    if padding == "border":
        return np.asarray(np.clip(place, 0, size - 1))
    if padding != "reflection":
        return place
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    if high <= low:
        return np.zeros_like(place)
    turned = np.mod(place - low, 2.0 * (high - low))
    return low + np.where(turned > high - low, 2.0 * (high - low) - turned, turned)


@kernel("HannWindow", "HammingWindow", "BlackmanWindow")
def _window(call: Call) -> Output:
    """HannWindow, HammingWindow, BlackmanWindow(size): a - b cos(t) + c cos(2 t), t = 2 pi n / size if `periodic`."""
    size = int(np.reshape(call[0], ()))
    angle = 2.0 * np.pi * np.arange(size) / (size if call.get("periodic", 1) else size - 1)
    # Coefficients of the operator specifications.
    a, b, c = {
        "HannWindow": (0.5, 0.5, 0.0),
        "HammingWindow": (25.0 / 46.0, 21.0 / 46.0, 0.0),
        "BlackmanWindow": (0.42, 0.5, 0.08),
    }[call.op_type]
    window = a - b * np.cos(angle) + c * np.cos(2.0 * angle)
    return convert(window, DType(call.get("output_datatype", DType.FLOAT.value)))
