"""Functions that a program applies to an output: to each number, or along an axis; and what it rounds them to."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from tensortriage.diagnose.sdk import EQUAL_IN_FP32, rms_error
from tensortriage_feeds.arrays.mixtures import limited
from tensortriage_feeds.arrays.numbers import CLEARER, Returned, other_unit

_MOST_DECIMALS = 7
_LEAST = 8
"""Numbers that a scale and an offset behind a function are fitted to, at least."""
Function = Callable[[np.ndarray], np.ndarray]
AlongAxis = Callable[[np.ndarray, int], np.ndarray]


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    moved = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(moved / moved.sum(axis, keepdims=True))


_BINARY = "keep its numbers in float32, in binary (np.save, --save-outputs)"
MODEL = "return the output as the model gives it, or put the {} into the model"
_FUNCTIONS: Mapping[str, tuple[str, Function]] = {
    "the Sigmoid of the model's": ("Sigmoid", lambda x: 1.0 / (1.0 + np.exp(-x))),
    "the model's before its Sigmoid": ("logit", lambda x: np.log(x / (1.0 - x))),
    "the Tanh of the model's": ("Tanh", np.tanh),
    "the exponential of the model's": ("Exp", np.exp),
    "the logarithm of the model's": ("Log", np.log),
    "the square root of the model's": ("Sqrt", np.sqrt),
    "the model's cut off at 0 and 1": ("Clip", lambda x: np.clip(x, 0.0, 1.0)),
    "the model's cut off at 0": ("Relu", lambda x: np.maximum(x, 0.0)),
    **{f"the model's multiplied by {by}": ("factor", partial(np.multiply, by)) for by in (100, 255, 1000, -1)},
    **{f"the model's divided by {by}": ("factor", partial(np.multiply, 1.0 / by)) for by in (100, 255)},
    "1 minus the model's": ("difference", lambda x: 1.0 - x),
    "the square of the model's": ("square", np.square),
    "1 over the model's (its inverse)": ("inverse", np.reciprocal),
    "the magnitude of the model's": ("Abs", np.abs),
    "the logarithm of 1 plus the model's": ("log1p", np.log1p),
    "the exponential of the model's, less 1": ("expm1", np.expm1),
}
"""Of each number."""
_WITH_A_LINE = ("Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "square", "inverse", "log1p", "logit")
"""Those behind which a scale and an offset may follow, as of a logarithm to another base."""
_WHOLE: Mapping[str, Function] = {"down": np.floor, "up": np.ceil, "towards 0": np.trunc}
_ALONG: Mapping[str, tuple[str, AlongAxis]] = {
    "the Softmax of the model's over {axis}": ("Softmax", _softmax),
    "the logarithm of the Softmax of the model's over {axis}": ("LogSoftmax", lambda x, a: np.log(_softmax(x, a))),
    "the model's divided by its length (L2) along {axis}": (
        "LpNormalization", lambda x, a: x / np.linalg.norm(x, axis=a, keepdims=True)),
    "the model's divided by its sum along {axis}": ("division", lambda x, a: x / x.sum(a, keepdims=True)),
    "the model's divided by its largest magnitude along {axis}": (
        "division", lambda x, a: x / np.abs(x).max(a, keepdims=True)),
    "the model's less its mean along {axis}": ("difference", lambda x, a: x - x.mean(a, keepdims=True)),
    "the model's less its largest number along {axis}": ("difference", lambda x, a: x - x.max(a, keepdims=True)),
    "the model's standardized by its own mean and deviation along {axis}": (
        "normalization", lambda x, a: (x - x.mean(a, keepdims=True)) / x.std(a, keepdims=True)),
    "the model's summed up along {axis}": ("CumSum", np.cumsum),
    "the model's multiplied up along {axis}": ("product", np.cumprod),
    "the differences of the model's along {axis}": ("difference", lambda x, a: np.diff(x, axis=a, prepend=0.0)),
}  # fmt: skip
"""Along one axis."""


def known_functions(exact: np.ndarray, given: np.ndarray) -> Iterator[Returned]:
    """Yield the roundings and functions that give an output.

    Args:
        exact: The right output, float64, finite.
        given: The program's, float64, finite, of the same shape.
    """
    if rounded := _rounded(exact, given):
        yield Returned(f"the model's rounded to {rounded}", _BINARY)
    for words, (name, function) in _FUNCTIONS.items():
        changed = _applied(partial(function, exact))
        if _is_close(exact, given, changed):
            yield Returned(words, MODEL.format(name))
    for words, (name, along) in _ALONG.items():
        for axis in reversed(range(exact.ndim)):
            changed = _applied(partial(along, exact, axis)) if exact.shape[axis] > 1 else None
            if _is_close(exact, given, changed):
                which = "the last axis" if axis == exact.ndim - 1 else f"axis {axis}"
                yield Returned(words.format(axis=which), MODEL.format(name))
    yield from limited(exact, given)
    if exact.size < _LEAST or not np.ptp(given):
        return
    for words, (name, function) in _FUNCTIONS.items():
        changed = _applied(partial(function, exact)) if name in _WITH_A_LINE else None
        line = None if changed is None else next(other_unit(changed.ravel(), given.ravel()), None)
        if changed is not None and line and not _is_next_to_a_line(exact, changed):
            yield Returned(line.words.replace("the model's", f"{words},"), MODEL.format(name))


def _is_next_to_a_line(exact: np.ndarray, changed: np.ndarray) -> bool:
    """Return whether a function is a line over these numbers, so that it tells nothing."""
    line = np.polynomial.Polynomial.fit(exact.ravel(), changed.ravel(), 1)(exact.ravel())
    return rms_error(changed.ravel(), line) < CLEARER * EQUAL_IN_FP32


def _applied(function: Callable[[], np.ndarray]) -> np.ndarray | None:
    """Return what a function makes; None where that is beyond float32, or all the same."""
    with np.errstate(all="ignore"):
        changed = np.asarray(function())
        fits = bool(np.all(np.abs(changed) <= np.finfo(np.float32).max))  # not of NaN
    return changed if fits and np.ptp(changed) else None


def _is_close(exact: np.ndarray, given: np.ndarray, changed: np.ndarray | None) -> bool:
    return changed is not None and rms_error(changed, given) < min(EQUAL_IN_FP32, rms_error(exact, given) / CLEARER)


def _rounded(exact: np.ndarray, given: np.ndarray) -> str:
    """Return to what numbers are rounded, the nearest or whole ones in one direction; empty where they are not."""
    tiny = EQUAL_IN_FP32 * np.abs(exact)
    with np.errstate(all="ignore"):
        half = given.astype(np.float16).astype(np.float64)
        spacing = np.abs(np.spacing(given.astype(np.float16)).astype(np.float64))
    if np.array_equal(half, given) and np.all(np.abs(given - exact) <= spacing / 2 + tiny):
        return "float16"
    for decimals in range(_MOST_DECIMALS):
        step = 10.0**-decimals
        steps = given / step
        whole = np.abs(steps - np.round(steps)) <= 1e-6 * np.maximum(1.0, np.abs(steps))
        if whole.all() and np.all(np.abs(given - exact) <= step / 2 + tiny):
            return f"{decimals} decimals" if decimals else "whole numbers"
    if np.ptp(given):
        near = np.abs(exact - np.rint(exact)) <= EQUAL_IN_FP32 * np.maximum(np.abs(exact), 1.0)
        for words, function in _WHOLE.items():
            if np.array_equal(np.where(near, given, function(exact)), given) and not near.all():
                return f"whole numbers, {words}"
    return ""
