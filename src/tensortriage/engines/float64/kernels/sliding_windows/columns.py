"""Convolution as a matrix product: every window of the input becomes a column, kernels are rows.

Columns are copied in pieces that stay in the cache, so the input is never unfolded whole. A kernel of one tap needs no
copy, and groups of one channel (depthwise) are summed tap by tap: their matrices are too thin for a matrix product.
"""

from collections.abc import Iterator

import numpy as np

from tensortriage.engines.float64.accumulation import Accumulation
from tensortriage.engines.float64.kernels.sliding_windows.windows import Windows, last_axes

_PIECE = 1 << 18
"""Elements of a piece of columns: 2 MB of float64, about a second-level cache."""


def correlate(x: np.ndarray, weight: np.ndarray, windows: Windows, groups: int, sums: Accumulation) -> np.ndarray:
    """Return ``y[n, m, p] = sum over c, t of weight[m, c, t] * x[n, c, window p at tap t]``.

    Args:
        x: Input (N, C, spatial...), float64.
        weight: Kernels (M, C / groups, taps...), float64.
        windows: The windows over the spatial axes.
        groups: Into how many groups channels fall.
        sums: How products add up.

    Returns:
        (N, M, windows...), float64.
    """
    n, c = x.shape[:2]
    m = weight.shape[0]
    sums = sums.over_channels(c // groups)
    grouped = x.reshape(n, groups, c // groups, *x.shape[2:])
    padded = windows.padded(sums.operand(grouped, 2).reshape(x.shape), 0)
    weight = sums.operand(weight, 1)
    if c == groups:
        return _depthwise(padded, weight, windows, sums).reshape(n, m, *windows.counts)
    rows = weight.reshape(groups, m // groups, -1)
    y = np.empty((n, groups, m // groups, int(np.prod(windows.counts, dtype=np.int64))))
    for image, start, columns in _columns(padded, windows, groups):
        y[image, :, :, start : start + columns.shape[-1]] = sums.product(rows, columns)
    return y.reshape(n, m, *windows.counts)


def _depthwise(padded: np.ndarray, weight: np.ndarray, windows: Windows, sums: Accumulation) -> np.ndarray:
    """Return the convolution whose groups have one channel each, shape (N, C, M / C, windows...)."""
    n, c = padded.shape[:2]
    kernels = weight.reshape(c, -1, *windows.kernel)
    y = np.empty((n, c, kernels.shape[1], *windows.counts))
    step = max(1, _PIECE // 8 // max(1, y[:, :1].size))
    for start in range(0, c, step):
        part = slice(start, start + step)
        y[:, part] = sums.total(_terms(padded[:, part], kernels[part], windows))
    return y


def _terms(padded: np.ndarray, kernels: np.ndarray, windows: Windows) -> Iterator[np.ndarray]:
    """Yield the products of one tap after the other, shape (N, C, M / C, windows...), in the same array."""
    spatial = (1,) * len(windows.kernel)
    n, c = padded.shape[:2]
    term = np.empty((n, c, kernels.shape[1], *windows.counts), padded.dtype)
    for place, view in windows.taps(padded):
        tap = last_axes(kernels, place)
        yield np.multiply(tap.reshape(*tap.shape, *spatial), view[:, :, None], out=term)


def _columns(padded: np.ndarray, windows: Windows, groups: int) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield (image, first window, columns); columns (groups, C / groups * taps, some windows), contiguous."""
    n, c = padded.shape[:2]
    count = int(np.prod(windows.counts, dtype=np.int64))
    if not count:
        return
    if set(windows.kernel) <= {1} and set(windows.strides) <= {1}:
        flat = padded.reshape(n, groups, c // groups, count)
        yield from ((image, 0, flat[image]) for image in range(n))
        return
    seen = _windows_view(padded, windows)
    depth = c * int(np.prod(windows.kernel))
    row = count // windows.counts[0]  # windows along all spatial axes but the first
    lines = max(1, min(windows.counts[0], _PIECE // max(1, depth * row)))
    for image in range(n):
        for line in range(0, windows.counts[0], lines):
            piece = seen[image][(slice(None),) * (1 + len(windows.kernel)) + (slice(line, line + lines),)]
            yield image, line * row, piece.reshape(groups, depth // groups, -1)


def _windows_view(padded: np.ndarray, windows: Windows) -> np.ndarray:
    """Return a view of shape (N, C, taps..., windows...), without a copy."""
    spatial = padded.strides[2:]
    taps = tuple(step * d for step, d in zip(spatial, windows.dilations, strict=True))
    moves = tuple(step * s for step, s in zip(spatial, windows.strides, strict=True))
    shape = (*padded.shape[:2], *windows.kernel, *windows.counts)
    return np.lib.stride_tricks.as_strided(padded, shape, (*padded.strides[:2], *taps, *moves), writeable=False)
