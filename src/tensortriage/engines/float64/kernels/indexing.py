"""Operators that pick or place elements by index."""

from collections.abc import Callable

import numpy as np

from tensortriage.engines.float64.kernels.call import Call, Output, kernel


@kernel("Gather")
def _gather(call: Call) -> Output:
    """Gather(data, indices): slices of data along `axis`; the shape is data's with that of indices for that axis."""
    return np.take(call[0], _wrapped(call[1], call[0].shape[call.get("axis", 0)]), axis=call.get("axis", 0))


@kernel("GatherElements")
def _gather_elements(call: Call) -> Output:
    """GatherElements(data, indices): output[i, j] = data[indices[i, j], j] for `axis` 0; indices' shape."""
    x, indices, axis = call[0], call[1], call.get("axis", 0)
    places = list(np.indices(indices.shape, sparse=True))
    places[axis] = _wrapped(indices, x.shape[axis])
    return x[tuple(places)]


@kernel("GatherND")
def _gather_nd(call: Call) -> Output:
    """GatherND(data, indices): data at the tuples in the last axis of indices; the first `batch_dims` axes go along."""
    x, indices, batch = call[0], call[1], call.get("batch_dims", 0)
    lead = [np.arange(n).reshape([-1 if i == j else 1 for j in range(indices.ndim - 1)]) for i, n in
            enumerate(indices.shape[:batch])]  # fmt: skip
    picks = [_wrapped(indices[..., i], x.shape[batch + i]) for i in range(indices.shape[-1])]
    return x[(*lead, *picks)]


@kernel("ScatterElements", "Scatter")
def _scatter_elements(call: Call) -> Output:
    """ScatterElements(data, indices, updates): data with data[indices[i, j], j] = updates[i, j] for `axis` 0.

    `reduction` adds, multiplies, or takes the larger or smaller instead of replacing.
    """
    x, indices, axis = call[0].copy(), call[1], call.get("axis", 0)
    places = list(np.indices(indices.shape, sparse=True))
    places[axis] = _wrapped(indices, x.shape[axis])
    return _placed(x, tuple(places), call[2], call.get("reduction", "none"))


@kernel("ScatterND")
def _scatter_nd(call: Call) -> Output:
    """ScatterND(data, indices, updates): data with updates, by `reduction`, at the tuples in indices' last axis."""
    x, indices = call[0].copy(), call[1]
    places = tuple(_wrapped(indices[..., i], x.shape[i]) for i in range(indices.shape[-1]))
    return _placed(x, places, call[2], call.get("reduction", "none"))


_REDUCE: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _placed(x: np.ndarray, places: tuple[np.ndarray, ...], updates: np.ndarray, reduction: str) -> np.ndarray:
    if reduction == "none":
        x[places] = updates
    else:
        _REDUCE[reduction].at(x, places, updates)
    return x


@kernel("TensorScatter")
def _tensor_scatter(call: Call) -> Output:
    """TensorScatter(past_cache, update, write_indices): the cache [batch, .., length, ..] with the update in it.

    Along `axis`, from each row's write index on; `circular` goes on at the beginning.
    """
    cache, update = call[0].copy(), call[1]
    axis = call.get("axis", -2)
    starts = np.zeros(cache.shape[0], np.int64) if call[2] is None else call[2]
    rows, fresh = np.moveaxis(cache, axis, 1), np.moveaxis(update, axis, 1)
    for row, new, start in zip(rows, fresh, starts, strict=True):
        places = int(start) + np.arange(new.shape[0])
        row[places % row.shape[0] if call.get("mode", "linear") == "circular" else places] = new
    return cache


@kernel("OneHot")
def _one_hot(call: Call) -> Output:
    """OneHot(indices, depth, values): a new `axis` of size depth, values[1] at the index and values[0] elsewhere."""
    depth = int(np.reshape(call[1], -1)[0])
    axis = call.get("axis", -1)
    indices = np.expand_dims(np.asarray(call[0]).astype(np.int64), axis)
    indices = np.where((indices >= -depth) & (indices < 0), indices + depth, indices)
    shape = [1] * indices.ndim
    shape[axis] = depth
    off, on = call[2]
    return np.where(indices == np.arange(depth).reshape(shape), on, off)


@kernel("NonZero")
def _non_zero(call: Call) -> Output:
    """NonZero(X): int64 [rank, count], the indices of nonzero elements, in row-major order."""
    return np.array(np.nonzero(np.atleast_1d(call[0])), np.int64).reshape(max(call[0].ndim, 1), -1)


@kernel("Compress")
def _compress(call: Call) -> Output:
    """Compress(input, condition): slices along `axis`, or elements of the flattened input, where condition holds."""
    return np.compress(call[1], call[0], axis=call.get("axis"))


@kernel("Unique")
def _unique(call: Call) -> Output:
    """Unique(X): Y, indices of first occurrence, inverse_indices, counts; of slices along `axis`, or of elements.

    Sorted, or in order of first occurrence if `sorted` = 0.
    """
    axis = call.get("axis")
    values, first, inverse, counts = np.unique(call[0], True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not call.get("sorted", 1):
        order = np.argsort(first)
        values = np.take(values, order, axis=0 if axis is None else axis)
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    return tuple([values, *(x.astype(np.int64) for x in (first, inverse, counts))][: call.outputs])


@kernel("TopK")
def _top_k(call: Call) -> Output:
    """TopK(X, K): values and int64 indices of the K largest or smallest along `axis`, in order; of equals the first."""
    x, axis = call[0], call.get("axis", -1)
    count = call.get("k") if call.version < 10 else int(np.reshape(call[1], -1)[0])
    # A stable sort of the descending order, so that equal elements keep the lower index first.
    if call.get("largest", 1):
        flipped = np.flip(x, axis)
        order = x.shape[axis] - 1 - np.flip(np.argsort(flipped, axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    order = np.take(order, np.arange(count), axis=axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int64)


def _arg(pick: Callable[..., np.ndarray]) -> Callable[[Call], Output]:
    def run(call: Call) -> Output:
        x, axis = call[0], call.get("axis", 0)
        if call.get("select_last_index", 0):
            found = x.shape[axis] - 1 - pick(np.flip(x, axis), axis=axis)
        else:
            found = pick(x, axis=axis)
        return np.asarray(np.expand_dims(found, axis) if call.get("keepdims", 1) else found).astype(np.int64)

    return run


kernel("ArgMax")(_arg(np.argmax))
kernel("ArgMin")(_arg(np.argmin))


def _wrapped(indices: np.ndarray, size: int) -> np.ndarray:
    """Return indices counted from the start; numpy would accept those from the end, but not as unsigned types."""
    indices = np.asarray(indices).astype(np.int64)
    if np.any((indices < -size) | (indices >= size)):
        raise IndexError(f"an index is outside [-{size}, {size})")
    return np.where(indices < 0, indices + size, indices)
