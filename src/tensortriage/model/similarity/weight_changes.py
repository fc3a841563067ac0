"""How a weight changed: rounded, transposed, rescaled, exchanged with another node's, or replaced by other numbers."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensortriage.model.similarity.changes import ChangeKind, NodeDifference
from tensortriage.model.similarity.weight_relations import counted, narrowed, relation
from tensortriage.values.dtype import Precision
from tensortriage.values.text import magnitude

ROUNDING = 2.0**-20
"""Relative RMS difference up to which numbers count as computed in another order in float32 (unit 2^-24, a folded
normalization rounds four times); for numbers that a narrower type holds, its spacing takes its place."""

_SCALE_SHARE = 0.99
"""Share of the RMS change of a weight that one factor must explain for it to be called rescaled."""

NARROW = (Precision.FP16, Precision.BF16)
"""Types in which the weights of a network are stored to save room, those of more digits first."""

_MOST_AXES = 4
Owner = Callable[[np.ndarray], str]
"""Returns the place of an array in the reference's model; empty when there is none."""


def weight_change(name: str, before: Any, after: Any, *, owner: Owner = lambda array: "") -> NodeDifference:
    """Return the change of a constant operand.

    Args:
        name: What the constant is called now.
        before: The tensor as it was (an onnx_ir tensor).
        after: The tensor as it is.
        owner: Finds an array elsewhere in the reference's model.
    """
    retyped = f"{after.dtype.name} {after.shape} instead of {before.dtype.name} {before.shape}"
    old, new = before.numpy(), after.numpy()
    if old.size == new.size == 1:
        new = new.reshape(old.shape)  # a single number is the same in any shape
    if not _is_float(old) or not _is_float(new):
        if before.dtype != after.dtype or old.shape != new.shape:
            return NodeDifference(ChangeKind.WEIGHT, f"has another constant {name!r}: {retyped}")
        return NodeDifference(ChangeKind.WEIGHT, f"has another constant {name!r}: {counted(old, new)}")
    was, now = old.astype(np.float64), new.astype(np.float64)
    if was.shape == now.shape and is_rounded(was, now):
        return NodeDifference(ChangeKind.WEIGHT_ROUNDED, f"has its constant {name!r} {narrowed(was, now) or 'rounded'}")
    unit = rounding_unit(new)
    for axes in _orders(was, now.shape):
        if _differ(was.transpose(axes), now) <= unit:
            how = "" if was.ndim == 2 else f", axes {list(axes)}"
            return NodeDifference(ChangeKind.WEIGHT_TRANSPOSED, f"has its weight {name!r} transposed{how}")
    if was.size > 1 and (place := owner(new)):
        return NodeDifference(ChangeKind.WEIGHT_OF_ANOTHER_NODE, f"has the weight of {place} as its {name!r}")
    if was.shape != now.shape:
        return NodeDifference(ChangeKind.WEIGHT, f"has another constant {name!r}: {retyped}")
    if factor := _factor(was, now):
        return NodeDifference(
            ChangeKind.WEIGHT_RESCALED, f"has its weight {name!r} multiplied by {magnitude(factor, 6)}"
        )
    if found := relation(was, now):
        return NodeDifference(found[0], f"has its weight {name!r} {found[1]}")
    return NodeDifference(ChangeKind.WEIGHT, f"has another constant {name!r}: {counted(was, now)}")


def _is_float(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def rounding_unit(array: np.ndarray) -> float:
    """Return the relative RMS difference up to which an array is equal to another but for rounding.

    The narrowest type that would hold the numbers counts, not the stored one.
    """
    for precision in NARROW:
        with np.errstate(over="ignore"):
            if np.array_equal(array.astype(precision.dtype.numpy).astype(np.float64), array, equal_nan=True):
                return float(precision.dtype.finfo.eps)  # a weight that was also folded in it: several roundings
    return ROUNDING


def is_rounded(was: np.ndarray, now: np.ndarray) -> bool:
    """Return whether a floating-point array equals another one of its shape but for rounding.

    Rounded are numbers of a narrow type, with infinities beyond its range, and results of another order of
    operations.
    """
    was, now = was.astype(np.float64), now.astype(np.float64)
    if _differ(was, now) <= rounding_unit(now):
        return True
    with np.errstate(over="ignore"):
        return any(
            np.array_equal(was.astype(precision.dtype.numpy).astype(np.float64), now, equal_nan=True)
            for precision in NARROW
        )


def _differ(was: np.ndarray, now: np.ndarray) -> float:
    """Return the RMS of the difference relative to the RMS of the original; inf where only one is finite."""
    finite = np.isfinite(was)
    if not np.array_equal(was[~finite], now[~finite], equal_nan=True) or not np.isfinite(now[finite]).all():
        return math.inf
    norm = float(np.linalg.norm(was[finite]))
    error = float(np.linalg.norm((now - np.where(finite, was, 0.0))[finite]))
    return error / norm if norm else (math.inf if error else 0.0)


def _orders(was: np.ndarray, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the orders of axes, but the one that is, that give an array a shape."""
    if not 2 <= was.ndim <= _MOST_AXES:
        return []
    orders = list(itertools.permutations(range(was.ndim)))[1:]
    wide = [axes for axes in orders if tuple(was.shape[axis] for axis in axes) == shape]
    return [axes for axes in wide if sum(n > 1 for n in shape) > 1]


def _factor(was: np.ndarray, now: np.ndarray) -> float:
    """Return the number by which an array was multiplied; 0 when that does not explain the change."""
    if was.size < 2 or not (np.isfinite(was).all() and np.isfinite(now).all()):
        return 0.0
    energy = float(np.vdot(was, was))
    factor = float(np.vdot(was, now)) / energy if energy else 0.0
    rest, change = np.linalg.norm(now - factor * was), np.linalg.norm(now - was)
    return factor if factor and rest <= (1.0 - _SCALE_SHARE) * change else 0.0
