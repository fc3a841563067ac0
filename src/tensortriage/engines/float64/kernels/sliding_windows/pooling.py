"""Pooling over windows and over all positions."""

import numpy as np

from tensortriage.engines.float64.kernels.call import Call, Output, kernel
from tensortriage.engines.float64.kernels.sliding_windows.windows import Windows, last_axes


@kernel("MaxPool")
def _max_pool(call: Call) -> Output:
    """MaxPool: the largest element of each window, and its flat index in X; X (N, C, spatial...)."""
    x = call[0]
    windows = Windows.of(call, x.shape[2:], call.get("kernel_shape"))
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    best = np.full((*x.shape[:2], *windows.counts), lowest, x.dtype)
    place_of = np.zeros(best.shape, np.int64)
    places = _places(x.shape, column_major=bool(call.get("storage_order", 0))) if call.outputs > 1 else None
    seen_places = None if places is None else windows.padded(places, -1)
    for place, view in windows.taps(windows.padded(x, lowest)):
        if seen_places is not None:
            inside = last_axes(seen_places, windows.cut(place))
            better = ((view > best) | np.isnan(view.astype(np.float64))) & (inside >= 0)
            np.copyto(place_of, np.broadcast_to(inside, best.shape), where=better)
        best = np.maximum(best, view)
    return (best, place_of)[: call.outputs]


def _places(shape: tuple[int, ...], *, column_major: bool) -> np.ndarray:
    """Return the flat index of every element of an array of that shape."""
    n, c, *spatial = shape
    size = int(np.prod(spatial, dtype=np.int64))
    inner = np.arange(size).reshape(spatial, order="F" if column_major else "C")
    planes = np.arange(n * c).reshape(n, c, *[1] * len(spatial))
    return planes * size + inner


@kernel("AveragePool")
def _average_pool(call: Call) -> Output:
    """AveragePool: the sum of each window over its number of elements, with or without pads; X (N, C, spatial...)."""
    x = call[0]
    windows = Windows.of(call, x.shape[2:], call.get("kernel_shape"))
    sums = call.arithmetic.sums
    total = sums.total(view for _, view in windows.taps(windows.padded(sums.term(x), 0)))
    ones = np.ones((1, 1, *x.shape[2:]))
    if call.get("count_include_pad", 0):  # padding counts, what ceil mode adds beyond it does not
        ones = np.pad(ones, ((0, 0), (0, 0), *windows.given_pads), constant_values=1)
        over = [(0, all_pads[1] - given[1]) for all_pads, given in zip(windows.pads, windows.given_pads, strict=True)]
        ones = np.pad(ones, ((0, 0), (0, 0), *over))
    else:
        ones = windows.padded(ones, 0)
    return total / sum(view for _, view in windows.taps(ones))


@kernel("LpPool")
def _lp_pool(call: Call) -> Output:
    """LpPool: ``(sum of |x|**p over each window)**(1 / p)``; X (N, C, spatial...)."""
    p = call.get("p", 2)
    windows = Windows.of(call, call[0].shape[2:], call.get("kernel_shape"))
    sums = call.arithmetic.sums
    total = sums.total(sums.term(np.abs(view) ** p) for _, view in windows.taps(windows.padded(call[0], 0)))
    return total ** (1.0 / p)


@kernel("GlobalAveragePool")
def _global_average_pool(call: Call) -> Output:
    """GlobalAveragePool: the mean over all spatial axes, kept as 1; X (N, C, spatial...)."""
    return call.arithmetic.sums.mean(call[0], tuple(range(2, call[0].ndim)), keepdims=True)


@kernel("GlobalMaxPool")
def _global_max_pool(call: Call) -> Output:
    """GlobalMaxPool: the largest element over all spatial axes, kept as 1; X (N, C, spatial...)."""
    return np.max(call[0], axis=tuple(range(2, call[0].ndim)), keepdims=True)


@kernel("GlobalLpPool")
def _global_lp_pool(call: Call) -> Output:
    """GlobalLpPool: ``(sum of |x|**p over all spatial axes)**(1 / p)``, axes kept as 1; X (N, C, spatial...)."""
    p = call.get("p", 2)
    axes = tuple(range(2, call[0].ndim))
    return call.arithmetic.sums.sum(np.abs(call[0]) ** p, axes, keepdims=True) ** (1.0 / p)
