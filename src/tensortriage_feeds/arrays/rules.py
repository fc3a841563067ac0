"""Outputs that a program returns in another order, or by another rule: indices, places, scores of another link."""

import itertools
from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.diagnose.sdk import EQUAL_IN_FP32, reversed_along, rms_error, swapped
from tensortriage_feeds.arrays.numbers import CLEARER, Returned, elsewhere
from tensortriage_feeds.transforms import Tensors

_LEAST = 4
"""Elements that an output has at least, for a rule to be no chance."""
_MOST_AXES = 5
_LINKED = 1e-4
"""Relative error of scores whose logits are computed back from fp32, where they are near 0 or 1."""
_RULE = "return the model's own indices, or let the model compute them by the rule that is meant"


def other_rules(name: str, right: Tensors, made: np.ndarray) -> Iterator[Returned]:
    """Yield the rule by which an output has its numbers from the right outputs.

    Args:
        name: The output.
        right: All of the right outputs.
        made: What the program returns.
    """
    own = np.asarray(right[name])
    if own.shape != made.shape or own.size < _LEAST or made.dtype.kind not in "fiu":
        return
    if made.dtype.kind in "iu":
        yield from _indices(right, made)
    for axis in range(own.ndim):
        yield from _along(own, made, axis)
    for one, other in itertools.combinations(range(own.ndim), 2):
        if own.shape[one] == own.shape[other] and _equal(np.swapaxes(own, one, other), made):
            yield elsewhere(swapped(one, other))
    yield from _reshaped(own, made)
    if own.dtype.kind == "f" and made.dtype.kind == "f":
        yield from _with_another(name, right, made)
        yield from _linked(own.astype(np.float64), made.astype(np.float64))


def _indices(right: Tensors, made: np.ndarray) -> Iterator[Returned]:
    """Yield the rule that chooses these indices from the values of another output."""
    if np.unique(made).size < 2:
        return
    for source, array in right.items():
        values = np.asarray(array)
        for axis in range(values.ndim if values.dtype.kind == "f" else 0):
            last = values.shape[axis] - 1
            rules: Mapping[str, np.ndarray] = {
                "smallest": values.argmin(axis),
                "largest": values.argmax(axis),
                "last of the largest": last - np.flip(values, axis).argmax(axis),
            }
            for words, chosen in rules.items():
                if chosen.size == made.size and np.array_equal(chosen.ravel(), made.ravel()):
                    yield Returned(f"the index of the {words} of '{source}' along axis {axis}", _RULE)


def _reshaped(own: np.ndarray, made: np.ndarray) -> Iterator[Returned]:
    """Yield that axes were exchanged, and the shape was kept: a reshape in place of a transposition."""
    if not 2 <= own.ndim <= _MOST_AXES or not np.ptp(own):
        return
    for order in itertools.permutations(range(own.ndim)):
        shape = tuple(own.shape[axis] for axis in order)
        if shape == own.shape:
            continue
        back = np.argsort(order)
        if _equal(np.transpose(own, order).reshape(own.shape), made):
            yield elsewhere(f"axes transposed to {list(order)}, read as if they were not")
        elif _equal(np.transpose(own.reshape(shape), back), made):
            yield elsewhere(f"reshaped to {list(shape)} and transposed to {back.tolist()}, though its axes were right")


def _with_another(name: str, right: Tensors, made: np.ndarray) -> Iterator[Returned]:
    """Yield that an output is multiplied by another one, or is its sum or difference with it."""
    own, given = np.asarray(right[name]).astype(np.float64), made.astype(np.float64)
    before = rms_error(own, given)
    for other, array in right.items():
        factor = np.asarray(array).astype(np.float64)
        if other == name or array.dtype.kind != "f" or factor.ndim != own.ndim or not np.ptp(factor):
            continue
        if any(size not in (1, full) for size, full in zip(factor.shape, own.shape, strict=True)):
            continue
        with np.errstate(all="ignore"):
            ways = {"multiplied by": own * factor, "divided by": own / factor, "plus": own + factor,
                    "minus": own - factor}  # fmt: skip
        for words, changed in ways.items():
            if np.isfinite(changed).all() and rms_error(changed, given) <= min(EQUAL_IN_FP32, before / CLEARER):
                cure = "combine outputs once, where the model's are read, or nowhere"
                yield Returned(f"the model's {words} its '{other}'", cure)


def _along(own: np.ndarray, made: np.ndarray, axis: int) -> Iterator[Returned]:
    """Yield what became of the order of an axis."""
    if own.shape[axis] < 2 or not np.ptp(own) or not np.isfinite(made.astype(np.float64)).all():
        return
    for words, at in {"first": 0, "last": own.shape[axis] - 1}.items():
        one = np.broadcast_to(np.take(own, [at], axis), own.shape)
        if np.ptp(one) and _equal(one, made):
            yield elsewhere(f"the {words} index of axis {axis} is everywhere along it")
    if _equal(np.flip(own, axis), made):
        yield elsewhere(reversed_along(axis))
    elif _equal(np.sort(own, axis), np.sort(made, axis)) and not _equal(own, made):
        yield elsewhere(f"axis {axis} is in another order, each of its numbers there once")


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype.kind in "iu" and other.dtype.kind in "iu":
        return np.array_equal(one, other)
    return rms_error(one.astype(np.float64), other.astype(np.float64)) <= EQUAL_IN_FP32


def _linked(own: np.ndarray, made: np.ndarray) -> Iterator[Returned]:
    """Yield the factor of the scores behind probabilities: by the Sigmoid, and by the Softmax over an axis."""
    if not all(array.min() > 0.0 and array.max() < 1.0 for array in (own, made)):
        return
    limit = min(_LINKED, rms_error(own, made) / CLEARER)
    scores = np.log(own / (1.0 - own))
    for axis in dict.fromkeys((own.ndim - 1, min(1, own.ndim - 1))):
        if own.shape[axis] > 2 and rms_error(made, _normed(scores, axis)) <= limit:
            words = f"the Softmax, over axis {axis}, of the scores whose Sigmoid is the model's"
            yield Returned(
                words, "take the Sigmoid of each score, as the model does, or put the Softmax into the model"
            )
    by = _factor(scores, np.log(made / (1.0 - made)))
    if rms_error(made, 1.0 / (1.0 + np.exp(-by * scores))) <= limit:
        words = f"the Sigmoid of {by:.4g} times the model's logits (of two classes: its Softmax)"
        yield Returned(words, f"leave that factor of the scores out, or undo it: sigmoid(logit(y) / {by:.4g})")
    for axis in range(own.ndim):
        logs = np.log(own) - np.log(own).mean(axis, keepdims=True)
        if own.shape[axis] < 2 or np.abs(own.sum(axis) - 1.0).max() > _LINKED:
            continue
        by = _factor(logs, np.log(made) - np.log(made).mean(axis, keepdims=True))
        if rms_error(made, _normed(by * logs, axis)) <= limit:
            words = f"the Softmax, over axis {axis}, of {by:.4g} times the model's scores (a temperature)"
            yield Returned(words, "leave that factor of the scores out, or put it into the model before its Softmax")


def _factor(own: np.ndarray, made: np.ndarray) -> float:
    """Return the factor between numbers, fitted; 0 where there are none."""
    return float(np.sum(own * made) / np.sum(own * own)) if np.any(own) else 0.0


def _normed(scores: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))
