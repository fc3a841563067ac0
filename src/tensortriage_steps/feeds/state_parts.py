"""Parts of a state, by the effect of a step: new rows, and rows carried over unchanged.

A cache passes its contents on, behind new rows or before them, a window all but its first rows, a cache of a fixed size
all but the rows that it wrote; unchanged rows are recognized by their bits. Other states are written again, which is a
whole.
"""

import dataclasses
from typing import Any

import numpy as np

Place = tuple[Any, ...]
"""An index of numpy."""

NEW, OLD = "new rows", "old rows"


@dataclasses.dataclass(frozen=True, slots=True)
class StatePart:
    """A part of an output.

    Attributes:
        word: ``new rows`` or ``old rows``; empty for the whole.
        place: The place of the part.
        source: Place of the same bits in the given state; None where there are none.
    """

    word: str = ""
    place: Place = ()
    source: Place | None = None


WHOLE = (StatePart(),)


def state_parts(before: np.ndarray, after: np.ndarray, count: int) -> tuple[StatePart, ...]:
    """Return the parts of a state.

    Args:
        before: The state that a step reads.
        after: The state that it returns, of any shape.
        count: Number of new rows, such as the tokens of the step; 0 where unknown.
    """
    if before.ndim != after.ndim or not before.size or not after.size:
        return WHOLE
    if before.shape == after.shape and np.array_equal(before, after):
        return (StatePart(OLD, (), ()),)
    for axis in range(after.ndim):
        if before.shape[:axis] + before.shape[axis + 1 :] == after.shape[:axis] + after.shape[axis + 1 :]:
            found = _handed_on(before, after, axis, count) or _written(before, after, axis, count)
            if found:
                return found
    return WHOLE


def _handed_on(before: np.ndarray, after: np.ndarray, axis: int, count: int) -> tuple[StatePart, ...]:
    """Find rows that moved along an axis as one, to its beginning or its end."""
    size, held = after.shape[axis], before.shape[axis]
    for new in (count,) if count else range(max(1, size - held), size):
        old = size - new
        if not 0 < old <= held:
            continue
        for begin, source in ((0, held - old), (new, 0)):
            place, origin = _along(axis, begin, begin + old), _along(axis, source, source + old)
            if np.array_equal(after[place], before[origin]) and np.any(after[place]):
                fresh = _along(axis, old, size) if begin == 0 else _along(axis, 0, new)
                return StatePart(NEW, fresh), StatePart(OLD, place, origin)
    return ()


def _written(before: np.ndarray, after: np.ndarray, axis: int, count: int) -> tuple[StatePart, ...]:
    """Find the few rows along an axis that are not as they were."""
    if before.shape != after.shape:
        return ()
    others = tuple(each for each in range(after.ndim) if each != axis)
    changed = np.any(before != after, axis=others)
    if not 0 < int(changed.sum()) <= min(max(count, 1), changed.size - 1):
        return ()
    head = (slice(None),) * axis
    kept = (*head, np.flatnonzero(~changed))
    return StatePart(NEW, (*head, np.flatnonzero(changed))), StatePart(OLD, kept, kept)


def _along(axis: int, begin: int, end: int) -> Place:
    return (*(slice(None),) * axis, slice(begin, end))
