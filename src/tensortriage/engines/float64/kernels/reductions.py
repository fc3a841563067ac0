"""Reductions over axes, softmax, and running sums."""

from collections.abc import Callable

import numpy as np

from tensortriage.engines.float64.accumulation import Accumulation
from tensortriage.engines.float64.kernels.call import Call, Output, kernel


def _log_sum_exp(x: np.ndarray, axis: tuple[int, ...] | None, keepdims: bool, sums: Accumulation) -> np.ndarray:
    largest = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    total = np.log(sums.sum(np.exp(x - shift), axis, keepdims=True)) + shift
    return np.asarray(total if keepdims else np.squeeze(total, axis))


def _extreme(pick: np.ufunc, highest: bool) -> Callable[..., np.ndarray]:
    def run(x: np.ndarray, axis: tuple[int, ...] | None, keepdims: bool, sums: Accumulation) -> np.ndarray:
        if x.dtype == bool:
            return np.asarray((np.any if not highest else np.all)(x, axis=axis, keepdims=keepdims))
        initial = np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max
        start = {True: initial, False: -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min}[highest]
        return np.asarray(pick.reduce(x, axis=axis, keepdims=keepdims, initial=start))

    return run


_REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "ReduceSum": lambda x, axis, keepdims, sums: sums.sum(x, axis, keepdims=keepdims),
    "ReduceMean": lambda x, axis, keepdims, sums: sums.mean(x, axis, keepdims=keepdims).astype(x.dtype),
    "ReduceProd": lambda x, axis, keepdims, sums: np.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype),
    "ReduceMax": _extreme(np.maximum, highest=False),
    "ReduceMin": _extreme(np.minimum, highest=True),
    "ReduceL1": lambda x, axis, keepdims, sums: sums.sum(np.abs(x), axis, keepdims=keepdims),
    "ReduceL2": lambda x, axis, keepdims, sums: np.sqrt(
        sums.sum(np.square(x, dtype=np.float64), axis, keepdims=keepdims)
    ).astype(x.dtype),
    "ReduceSumSquare": lambda x, axis, keepdims, sums: sums.sum(x * x, axis, keepdims=keepdims),
    "ReduceLogSum": lambda x, axis, keepdims, sums: np.log(sums.sum(x, axis, keepdims=keepdims)).astype(x.dtype),
    "ReduceLogSumExp": lambda x, axis, keepdims, sums: _log_sum_exp(x.astype(np.float64), axis, keepdims, sums).astype(
        x.dtype
    ),
}


def _reduction(function: Callable[..., np.ndarray]) -> Callable[[Call], Output]:
    def run(call: Call) -> Output:
        axes = call.integers(1, "axes")
        if not axes and call.get("noop_with_empty_axes", 0):
            return call[0]
        return function(call[0], tuple(axes) if axes else None, bool(call.get("keepdims", 1)), call.arithmetic.sums)

    return run


for _name, _function in _REDUCTIONS.items():
    kernel(_name)(_reduction(_function))


def _softmax(x: np.ndarray, axis: int, sums: Accumulation) -> np.ndarray:
    """Return exp(x) scaled to sum 1 along an axis; rows of -inf become NaN, as in the definition."""
    scaled = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    scaled /= sums.sum(scaled, axis, keepdims=True)
    return np.asarray(scaled)


def _log_softmax(x: np.ndarray, axis: int, sums: Accumulation) -> np.ndarray:
    shifted = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return np.asarray(shifted - np.log(sums.sum(np.exp(shifted), axis, keepdims=True)))


def _hardmax(x: np.ndarray, axis: int, sums: Accumulation) -> np.ndarray:
    marks = np.zeros_like(x)
    np.put_along_axis(marks, np.expand_dims(np.argmax(x, axis=axis), axis), 1, axis)
    return marks


def _along_axis(function: Callable[[np.ndarray, int, Accumulation], np.ndarray]) -> Callable[[Call], Output]:
    def run(call: Call) -> Output:
        x = call[0]
        if call.version >= 13:
            return function(x, call.get("axis", -1), call.arithmetic.sums)
        axis = call.get("axis", 1)  # until operator set 12 everything from this axis on counts as one axis
        rows = int(np.prod(x.shape[: axis + x.ndim if axis < 0 else axis], dtype=np.int64))
        return function(x.reshape(rows, -1), 1, call.arithmetic.sums).reshape(x.shape)

    return run


for _name, _function in {"Softmax": _softmax, "LogSoftmax": _log_softmax, "Hardmax": _hardmax}.items():
    kernel(_name)(_along_axis(_function))


@kernel("CumSum")
def _cum_sum(call: Call) -> Output:
    """CumSum: running sums along an axis, with or without the element itself, from either end; float64."""
    return _running(call, np.cumsum, 0)


@kernel("CumProd")
def _cum_prod(call: Call) -> Output:
    """CumProd: running products along an axis, with or without the element itself, from either end; float64."""
    return _running(call, np.cumprod, 1)


def _running(call: Call, accumulate: Callable[..., np.ndarray], neutral: int) -> np.ndarray:
    axis = int(np.reshape(call[1], -1)[0])
    x = np.flip(call[0], axis) if call.get("reverse", 0) else call[0]
    total = accumulate(x, axis=axis, dtype=x.dtype)
    if call.get("exclusive", 0):
        total = np.roll(total, 1, axis)
        first: list[slice | int] = [slice(None)] * x.ndim
        first[axis] = 0
        total[tuple(first)] = neutral
    return np.flip(total, axis) if call.get("reverse", 0) else total
