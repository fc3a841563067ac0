"""Inputs that arrive in part, in another order of rows, or as other bytes: what becomes of a tensor as it is copied."""

from fractions import Fraction

import numpy as np

from tensortriage.diagnose.sdk import stored_type
from tensortriage_feeds.memory import memory_of
from tensortriage_feeds.pictures import picture_axes
from tensortriage_feeds.transforms import Transform, of_input

_MOST_ROWS = 256
"""Rows of a batch that are looked for among each other."""
_LEAST_IN_ROW = 4
"""Numbers in a row, below which rows may be equal by chance."""
_LEAST_STEPS, _MOST_STEP = 4, 8
"""Slices that bear out another step at least, and its numerator and denominator at most."""


def part_of(name: str, mine: np.ndarray, theirs: np.ndarray) -> Transform | None:
    """Return how one tensor is copied to another, if rows, a slice, padding or bytes of another type are all.

    Args:
        name: The input.
        mine: The right tensor.
        theirs: The tensor that arrives; its shape may differ.
    """
    if mine.shape == theirs.shape:
        return _other_slices(name, mine, theirs) or _other_bytes(name, mine, theirs) or memory_of(name, mine, theirs)
    return _cut_or_padded(name, mine, theirs)


def _other_slices(name: str, mine: np.ndarray, theirs: np.ndarray) -> Transform | None:
    """Return which slices of an axis lie in place of others, or were never filled; None where that is not all."""
    pictures = picture_axes(mine.shape)
    places = () if pictures is None or mine.shape[pictures.channel] == 1 else pictures.places  # letterboxes, crops
    for axis, size in enumerate(mine.shape):
        if mine.ndim < 2 or axis in places or not 2 <= size <= _MOST_ROWS or mine.size // size < _LEAST_IN_ROW:
            continue
        rows, others = (np.ascontiguousarray(np.moveaxis(each, axis, 0)).reshape(size, -1) for each in (mine, theirs))
        known = {row.tobytes(): at for at, row in reversed([*enumerate(rows)]) if axis == 0 or np.ptp(row)}
        sources = [at if np.array_equal(rows[at], row) else known.get(row.tobytes(), -1)
                   for at, row in enumerate(others)]  # fmt: skip
        moved = [at for at, source in enumerate(sources) if source not in (at, -1)]
        even = [at for at, source in enumerate(sources) if source < 0 and not np.ptp(others[at])]
        if axis == 0:
            even = [at for at in even if not others[at].any()]
        if mine.ndim == 2 and axis and len(set(sources)) == size:
            continue  # columns in another order
        if (even or moved) and sources.count(-1) <= len(even) < size and (axis == 0 or moved):
            return _moved_slices(name, theirs, axis, sources, even)
        if axis and (step := _other_step(sources)) is not None:
            return _at_step(name, theirs, axis, step, len(moved))
    return None


def _moved_slices(name: str, theirs: np.ndarray, axis: int, sources: list[int], even: list[int]) -> Transform:
    moved = [at for at, source in enumerate(sources) if source not in (at, -1)]
    what = "rows {} of its batch" if axis == 0 else f"indices {{}} of axis {axis}"
    said, places = str(sources), f" in place of 0 to {len(sources) - 1}"
    apart = {at - sources[at] for at in moved}
    if len(set(sources)) == 1:
        said, places = str(sources[0]), " everywhere along it"
    elif len(apart) == 1 and len(moved) > _LEAST_IN_ROW:
        said, places = f"{sources[moved[0]]} to {sources[moved[-1]]}", f" moved by {apart.pop()}"
    elif even and axis:
        said = str([sources[at] if at not in even else "one number" for at in range(len(sources))])
    elif even:
        what, places = f"rows {{}} in places {moved} of its batch", ""
        said = str([sources[at] for at in moved])
    says = [f"holds {what.format(said)}{places}{', in this order' if axis else ''}"] if moved else []
    if even and axis == 0:
        says += [f"has rows {even} of its batch empty (0)"]
    cure = f"copy every index of axis {axis} of {{x}} to a place of its own, in the order of the reference"
    if axis == 0:
        cure = "copy every row to a place of its own in the batch, and wait for a copy before its source is used again"
    return of_input(name, "batch-order" if axis == 0 else "other-indices", " and ".join(says), lambda _: theirs, cure,
                    **{"rows" if axis == 0 else "order": sources, "axis": axis})  # fmt: skip


def _other_step(sources: list[int]) -> Fraction | None:
    """Return by how much a slice lies further for each further one, if all of them that lie at whole places say so."""
    found = [(at, source) for at, source in enumerate(sources) if source >= 0]
    if len(found) < _LEAST_STEPS or found[-1][0] == found[0][0]:
        return None
    step = Fraction(found[-1][1] - found[0][1], found[-1][0] - found[0][0])
    if step in (0, 1) or max(step.numerator, step.denominator) > _MOST_STEP or step < 0:
        return None
    begin = found[0][1] - step * found[0][0]
    places = ((at, begin + step * at) for at in range(len(sources)))
    wanted = [(at, int(where)) for at, where in places if where.denominator == 1 and 0 <= where < len(sources)]
    return (
        step if wanted == found and len(found) * max(float(step.denominator), float(step)) >= len(sources) / 2 else None
    )


def _at_step(name: str, theirs: np.ndarray, axis: int, step: Fraction, count: int) -> Transform:
    words = (
        f"goes along axis {axis} at {step} of the step, which {count} of its slices show: another hop between frames, "
        "another rate of frames or samples"
    )
    cure = f"take the slices of axis {axis} of {{x}} at the step of training"
    return of_input(name, "resampling", words, lambda _: theirs, cure, axis=axis,
                    ratio=[step.numerator, step.denominator])  # fmt: skip


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
