"""Inputs that arrive in part, in another order of rows, or as other bytes: what becomes of a tensor as it is copied."""

import numpy as np

from tensortriage.diagnose.sdk import stored_type
from tensortriage_feeds.memory import memory_of
from tensortriage_feeds.transforms import Transform, of_input

_MOST_ROWS = 256
"""Rows of a batch that are looked for among each other."""
_LEAST_IN_ROW = 4
"""Numbers in a row, below which rows may be equal by chance."""


def part_of(name: str, mine: np.ndarray, theirs: np.ndarray) -> Transform | None:
    """Return how one tensor is copied to another, if rows, a slice, padding or bytes of another type are all.

    Args:
        name: The input.
        mine: The right tensor.
        theirs: The tensor that arrives; its shape may differ.
    """
    if mine.shape == theirs.shape:
        return _other_rows(name, mine, theirs) or _other_bytes(name, mine, theirs) or memory_of(name, mine, theirs)
    return _cut_or_padded(name, mine, theirs)


def _other_rows(name: str, mine: np.ndarray, theirs: np.ndarray) -> Transform | None:
    """Return the rows of a batch that lie in place of others, or were never filled; None where that is not all."""
    if mine.shape != theirs.shape or mine.ndim < 2 or not 2 <= len(mine) <= _MOST_ROWS or mine[0].size < _LEAST_IN_ROW:
        return None
    sources = [next((at for at, row in enumerate(mine) if np.array_equal(row, each)), -1) for each in theirs]
    empty = [
        place for place, (source, row) in enumerate(zip(sources, theirs, strict=True)) if source < 0 and not row.any()
    ]
    moved = [place for place, source in enumerate(sources) if source not in (place, -1)]
    if not (empty or moved) or sources.count(-1) > len(empty) or len(empty) == len(theirs):
        return None
    says = [f"holds rows {sources} of its batch in place of 0 to {len(mine) - 1}"] if moved and not empty else []
    says += [f"holds rows {[sources[at] for at in moved]} in places {moved} of its batch"] if moved and empty else []
    says += [f"has rows {empty} of its batch empty (0)"] if empty else []
    cure = "copy every row to a place of its own in the batch, and wait for a copy before its source is used again"
    return of_input(name, "batch-order", " and ".join(says), lambda _: theirs, cure, rows=sources)


def _other_bytes(name: str, mine: np.ndarray, theirs: np.ndarray) -> Transform | None:
    """Return the type of the numbers whose bytes arrive, as many as there is room for; None for its own."""
    if mine.dtype.kind not in "fiu" or mine.size < _LEAST_IN_ROW:
        return None
    found = stored_type(mine, theirs)
    if found is None:
        return None
    held, read = found
    words = f"holds the bytes of its numbers in {held}, read as {read}"
    cure = f"convert {{x}} to {read} before its memory is copied: {{x}}.astype(np.{read})"
    return of_input(name, "other-bytes", words, lambda _: theirs, cure, dtype=held)


def _cut_or_padded(name: str, mine: np.ndarray, theirs: np.ndarray) -> Transform | None:
    """Return the slice of one axis that is left of a tensor, or the zeros that it got at its ends."""
    axes = [axis for axis, (one, other) in enumerate(zip(mine.shape, theirs.shape, strict=False)) if one != other]
    if mine.ndim != theirs.ndim or len(axes) != 1 or mine.dtype != theirs.dtype:
        return None
    (axis,) = axes
    long, short = sorted((mine, theirs), key=lambda array: -array.shape[axis])
    length, room = short.shape[axis], long.shape[axis]
    if short.size < _LEAST_IN_ROW or not np.ptp(short):
        return None
    starts = (start for start in range(room - length + 1) if _equal_slice(long, short, axis, start))
    start = next(starts, None)
    if start is None:
        return None
    if long is mine:
        words = f"is cut to indices {start}..{start + length - 1} of axis {axis}: {length} of {room}"
        cure = f"hand over all {room} of {{x}}, which the network computes with"
        return of_input(name, "cut", words, lambda x: np.take(x, range(start, start + length), axis), cure, start=start)
    if np.delete(theirs, range(start, start + length), axis).any():
        return None
    ends = (start, room - length - start)
    words = f"has {ends[0]} zeros before and {ends[1]} behind its {length} along axis {axis}"
    pads = [ends if each == axis else (0, 0) for each in range(mine.ndim)]
    return of_input(name, "padded", words, lambda x: np.pad(x, pads), "hand {x} over as long as it is", pads=list(ends))


def _equal_slice(long: np.ndarray, short: np.ndarray, axis: int, start: int) -> bool:
    part = long[(slice(None),) * axis + (slice(start, start + short.shape[axis]),)]
    return np.array_equal(part, short, equal_nan=short.dtype.kind == "f")
