"""Right numbers of an output in other places of its memory: rows of another length, a part of it, slices moved."""

import math
from collections.abc import Iterator

import numpy as np

from tensortriage.diagnose.sdk import EQUAL_IN_FP32, order_words, rms_error
from tensortriage_feeds.arrays.numbers import Returned, elsewhere

ALIGNED = (2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Lengths of which engines and cameras make the rows of their buffers a multiple."""
_LEAST_ROWS = 2
"""Rows behind the first that have to be right at another length."""
_LEAST = 4
"""Numbers below which places may agree by chance."""
_MOST_STARTS = 8
"""Places that the second row of a buffer is looked for at."""
_MOST_SLICES = 4096


def other_places(right: np.ndarray, made: np.ndarray) -> Iterator[Returned]:
    """Yield where the numbers of an output are, if not in their places.

    Args:
        right: The right output, float64, finite, of any shape.
        made: What the program returns, float64, of the same shape; what is beyond its buffer may be anything.
    """
    if right.size < _LEAST or np.ptp(right) == 0.0:
        return
    if (rows := pitch(right, made)) is not None:
        length, stride = rows
        yield Returned(
            f"the memory of the model's with rows of {stride} numbers, {length} and padding, read as if it had none",
            f"copy {length} numbers of each row and step {stride} (the stride that the engine gives with the buffer)",
        )
    if (count := first_alone(right, made)) is not None:
        share = f", 1/{round(right.size / count)}" if right.size % count == 0 else ""
        rest = "left at 0" if not made.ravel()[count:].any() else "memory that is never filled"
        yield Returned(
            f"the model's in the first {count:,} of {right.size:,} numbers{share}, behind them {rest}",
            "copy all of that output: the number of its elements times the bytes of one",
        )
    if (order := moved_slices(right, made)) is not None:
        yield elsewhere(order)


def pitch(right: np.ndarray, made: np.ndarray) -> tuple[int, int] | None:
    """Return the length of a row, and the distance of rows in memory, at which all that is there is right.

    Rows are those of the last axis, or of several last ones that lie together.
    """
    flat, memory = right.ravel(), made.ravel()
    length = 1
    for size in reversed(right.shape[1:]):
        length *= size
        if length < 2 or length == flat.size:
            continue
        aligned = [-(-length // each) * each for each in ALIGNED]
        for stride in dict.fromkeys((*aligned, *_next_rows(flat, memory, length))):
            rows = (memory.size - length) // stride + 1
            if stride == length or rows < _LEAST_ROWS + 1:
                continue
            places = (np.arange(rows)[:, None] * stride + np.arange(length)).ravel()
            wanted = flat[: places.size]
            if np.ptp(wanted[length:]) and rms_error(wanted[length:], memory[places[length:]]) <= EQUAL_IN_FP32:
                return length, stride
    return None


def _next_rows(flat: np.ndarray, memory: np.ndarray, length: int) -> list[int]:
    """Return where the second row may begin: the first places that hold its first numbers."""
    lead = min(length, _LEAST)
    end = min(3 * length, memory.size - lead)
    at = np.arange(length + 1, max(end, length + 1))
    with np.errstate(invalid="ignore"):
        alike = np.abs(memory[at[:, None] + np.arange(lead)] - flat[length : length + lead]).max(axis=1, initial=0)
    return [int(each) for each in at[alike <= EQUAL_IN_FP32 * np.abs(flat).max()][:_MOST_STARTS]]


def first_alone(right: np.ndarray, made: np.ndarray) -> int | None:
    """Return how many numbers of an output are right, if those are the first and the rest was never written.

    What is not 0 counts as never written if it begins within the slices of every axis: no op ends there. Where axes
    before one have one index, a part that was put together may end with its slices.
    """
    flat, memory = right.ravel(), made.ravel()
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~(np.abs(memory - flat) <= EQUAL_IN_FP32 * np.abs(flat).max()))
    if not wrong.size or wrong[0] < _LEAST or 2 * wrong.size < flat.size - wrong[0]:
        return None
    count = int(wrong[0])
    if not memory[count:].any():  # numbers that are 0 in both
        count = int(np.flatnonzero(memory)[-1]) + 1 if memory.any() else 0
        return count if count >= _LEAST else None
    joins = (math.prod(right.shape[axis + 1 :]) for axis in range(right.ndim) if math.prod(right.shape[:axis]) == 1)
    return None if any(count % size == 0 for size in joins) else count


def moved_slices(right: np.ndarray, made: np.ndarray) -> str | None:
    """Return how slices along an axis are moved: in another order but the reverse, or along it; None if they are not.

    A reversed or transposed output is a layout, which has words of its own.
    """
    for axis, size in enumerate(right.shape):
        order = order_of(np.moveaxis(right, axis, 0), np.moveaxis(made, axis, 0)) if 2 < size <= _MOST_SLICES else None
        if order is None or np.array_equal(order, np.arange(size)[::-1]):
            continue
        return f"slices of axis {axis} are {order_words(order)}"
    return None


def order_of(right: np.ndarray, made: np.ndarray) -> np.ndarray | None:
    """Return the index of the right slice that each slice of the first axis holds.

    None where one holds none or two the same, or where all hold their own.

    Args:
        right: The right slices, float64, ``[n, ...]``.
        made: Those to be told, of the same shape.
    """
    rows, others = (np.ascontiguousarray(each).reshape(len(each), -1) for each in (right, made))
    along = np.cos(np.arange(rows.shape[1]) * np.e)  # any direction: slices that differ differ along it
    keys, found = rows @ along, others @ along
    ranks = np.argsort(keys)
    near = np.searchsorted(keys[ranks], found).clip(1, len(ranks) - 1)
    closer = np.abs(keys[ranks[near - 1]] - found) < np.abs(keys[ranks[near]] - found)
    order = np.where(closer, ranks[near - 1], ranks[near])
    if len(set(order.tolist())) < len(order) or np.array_equal(order, np.arange(len(order))):
        return None
    return order if rms_error(rows[order], others) <= EQUAL_IN_FP32 else None
