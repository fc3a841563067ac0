"""Changes that make a quantized weight hold other numbers than the original's: moved or rescaled rows.

Rounding moves a number by half a step. If all numbers of a row are half a step from those of another row, or from a
multiple of its own, the row was that before it was rounded: methods that choose among roundings, or compensate for
them, move numbers one by one. Methods that rescale rows do it in two places, which leaves the model equivalent; so a
caller has to know that the model was changed.
"""

from collections.abc import Sequence

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.text import magnitude

HALF_A_STEP = 0.5 + 1e-3
"""In steps; a folded normalization is computed in float32, which moves an int8 by a 10^-5th of the step at most."""

_FEWEST_IN_ROW = 9
"""Number of elements that make a row recognizable: at 4 bits one in six lies within half a step of any, and a factor
fits one; so that of a thousand rows of nine a row meets one by chance in one of a thousand cases."""

_FAR_IN_STEPS, _MOST_FAR = 8.0, 0.1
"""Steps from its original beyond which one number of a quantized weight is another, where no more than this share of
the weight is over a step away. Methods that make up for rounding move many numbers, each by a few steps."""

_MOST_SOUGHT = 64
"""Number of rows that are looked for in other places: enough to recognize the change of a weight."""


@frozen_dataclass
class WeightMove:
    """The change of one row.

    Attributes:
        axis: The axis along which rows are counted.
        other: Index of the original's row with the same numbers; the row's own where it did not move.
        factor: Factor of its numbers against that row's, as precisely as rounding allows.
    """

    row: int
    axis: int
    other: int
    factor: float = 1.0

    @property
    def words(self) -> str:
        """The change in words, after "in index 3 of axis 0"."""
        where = f"index {self.row} of axis {self.axis}"
        if self.other != self.row:
            return f"{where} holds the original's index {self.other}, times {magnitude(self.factor)}"
        return f"{where} is {magnitude(self.factor)} times the original's"


def weight_moves(was: np.ndarray, now: np.ndarray, step: np.ndarray) -> tuple[WeightMove, ...]:
    """Return the rows of a weight, or else the columns, that were put elsewhere or rescaled before they were quantized.

    Args:
        was: The original's numbers.
        now: The dequantized ones, of the same shape.
        step: Distance between neighbouring numbers of the format; broadcasts to the shape.
    """
    steps = np.broadcast_to(step, was.shape)
    if was.ndim < 2:
        return ()
    for axis in (0, was.ndim - 1):
        if found := _moves(_rows(was, axis), _rows(now, axis), _rows(steps, axis), axis):
            return found
    return ()


def scattered(was: np.ndarray, now: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return which few numbers of a weight are others than the original's rounded; none of those that are cut off.

    Args:
        was: The original's numbers.
        now: The dequantized ones, of the same shape.
        step: Distance between neighbouring numbers of the format; broadcasts to the shape.
    """
    away = np.abs(now - was) / step
    ends = [(now == now.max(axis=axis, keepdims=True)) & (was > now) for axis in range(was.ndim)]
    ends += [(now == now.min(axis=axis, keepdims=True)) & (was < now) for axis in range(was.ndim)]
    far = (away > _FAR_IN_STEPS) & ~np.any(ends, axis=0)
    return far if float(np.mean(away > 1.0)) <= _MOST_FAR else np.zeros_like(far)


def moved(was: np.ndarray, now: np.ndarray, moves: Sequence[WeightMove]) -> tuple[np.ndarray, np.ndarray]:
    """Return the original's weight with rows that moved as they are now, and with them only rounded as they are now.

    Args:
        was: The original's numbers.
        now: The dequantized ones, of the same shape.
        moves: The result of `weight_moves`.
    """
    there, rounded = was.astype(np.float32), was.astype(np.float32)
    for move in moves:
        at: list[slice | int] = [slice(None)] * was.ndim
        at[move.axis] = move.row
        source = list(at)
        source[move.axis] = move.other
        there[tuple(at)] = now[tuple(at)]
        rounded[tuple(at)] += (now[tuple(at)] - move.factor * was[tuple(source)]).astype(np.float32)
    return there, rounded


def _rows(array: np.ndarray, axis: int) -> np.ndarray:
    return np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1).astype(np.float64)


def _moves(was: np.ndarray, now: np.ndarray, steps: np.ndarray, axis: int) -> tuple[WeightMove, ...]:
    """Return the moves of rows, all three arrays [rows, numbers]."""
    if was.shape[1] < _FEWEST_IN_ROW:
        return ()
    found, sought = [], 0
    directions = was / np.maximum(np.linalg.norm(was, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    for row in np.flatnonzero(np.median(np.abs(now - was) / steps, axis=1) > 1.0):
        factor = _factor(was[row], now[row], steps[row])
        if factor is not None:
            found.append(WeightMove(int(row), axis, int(row), factor))
            continue
        sought += 1
        if sought > _MOST_SOUGHT:
            continue
        other = int(np.argmax(np.abs(directions @ now[row])))
        factor = _factor(was[other], now[row], steps[row])
        if factor:
            found.append(WeightMove(int(row), axis, other, factor))
    return tuple(found)


def _factor(was: np.ndarray, now: np.ndarray, steps: np.ndarray) -> float | None:
    """Return a factor that turns numbers, multiplied and rounded, into others; None when there is none.

    Each number leaves an interval of factors; the factor lies in all of them.
    """
    room = HALF_A_STEP * steps
    nonzero = was != 0.0
    if (np.abs(now[~nonzero]) > room[~nonzero]).any() or not nonzero.any():
        return None
    ends = (now[nonzero] - room[nonzero]) / was[nonzero], (now[nonzero] + room[nonzero]) / was[nonzero]
    least, most = float(np.minimum(*ends).max()), float(np.maximum(*ends).min())
    return (least + most) / 2.0 if least <= most else None
