"""Inputs whose memory is copied at another length: rows with padding, a part of a buffer, four channels for three.

One function of each is tried on the reference where nothing but outputs is seen, and told where both tensors are.
"""

import functools
import math
from collections.abc import Iterator

import numpy as np

from tensortriage_feeds.arrays.places import ALIGNED, first_alone, order_of, pitch
from tensortriage_feeds.pictures import picture_axes
from tensortriage_feeds.transforms import CHANCE_BITS, Transform, of_input

_LEAST_SHARE, _CHANCE = 1 / 16, 0.02
"""The least part of a buffer that is copied where others lie behind it, and how many of those are right by chance."""
_LEAST_ROW = 4
"""Numbers in a row below which nobody aligns one."""
_SHARES = ((1, 4), (1, 2), (1, 3), (2, 3), (1, 8))
"""Parts of a buffer that are copied: bytes counted as numbers (a quarter, a half), one or two planes of three."""
LEAST_ROWS = 8
"""Rows of a table from which on the order of its columns is no chance."""


def memory_candidates(name: str, array: np.ndarray) -> Iterator[Transform]:
    """Yield ways in which a program copies the memory of an input wrong, likeliest first."""
    for length in _row_lengths(array):
        for stride in dict.fromkeys(-(-length // each) * each for each in ALIGNED):
            if stride != length and (array.size - 1) // length > 1:
                yield _with_padding(name, length, stride)
                yield _without_padding(name, length, stride)
    for over, under in _SHARES:
        if array.size % under == 0 and array.size > under:
            yield _first(name, array.size * over // under, array.size)
    axes = picture_axes(array.shape)
    if axes is not None and array.shape[axes.channel] == 3 and array.dtype.kind != "b":
        full = (0.0, 1.0, 255.0) if array.dtype.kind == "f" else (0, min(255, np.iinfo(array.dtype).max))
        for filled in dict.fromkeys(full):
            words = f"holds pixels of four numbers (the fourth {filled:g}), read as three"
            yield of_input(name, "other-channels", words,
                           functools.partial(_four_as_three, axis=axes.channel, filled=filled),
                           "take the first three channels of each pixel: {x}[..., :3]", fourth=filled)  # fmt: skip


def memory_of(name: str, mine: np.ndarray, theirs: np.ndarray) -> Transform | None:
    """Return how the memory of one tensor was copied to another of its shape; None where that is not all."""
    if mine.shape != theirs.shape or mine.dtype.kind not in "fiu" or theirs.dtype.kind not in "fiu":
        return None
    with np.errstate(invalid="ignore"):  # of bytes that are no numbers
        right, made = mine.astype(np.float64), theirs.astype(np.float64)
    if mine.size < _LEAST_ROW or not np.isfinite(right).all() or np.ptp(right) == 0.0:
        return None
    if (rows := pitch(right, made)) is not None:
        return _with_padding(name, *rows)
    if np.ptp(made) and (rows := pitch(made, right)) is not None:
        return _without_padding(name, *rows)
    axes = picture_axes(mine.shape)
    if axes is not None and axes.channel < axes.height and mine.shape[axes.channel] > 1:
        as_made = [np.ascontiguousarray(np.moveaxis(each, axes.channel, -1)) for each in (right, made)]
        for step, (one, other) in ((_with_padding, as_made), (_without_padding, as_made[::-1])):
            if np.ptp(other) and (rows := pitch(one, other)) is not None:
                return _before_transposed(name, step(name, *rows), axes.channel)
    if (count := first_alone(right, made)) is not None and _is_left_alone(right.ravel(), made.ravel(), count):
        return _first(name, count, mine.size)
    if mine.ndim == 2 and len(mine) >= LEAST_ROWS and (order := order_of(right.T, made.T)) is not None:
        back = np.argsort(order).tolist()
        return of_input(name, "column-order", f"has its columns in the order {order.tolist()}",
                        lambda x: x[:, order], f"{{x}} = {{x}}[:, {back}]", order=order.tolist())  # fmt: skip
    return _unfilled(name, right, made) or _renumbered(name, mine, theirs)


def _is_left_alone(right: np.ndarray, made: np.ndarray, count: int) -> bool:
    """Return whether numbers behind the first are 0, or others throughout: half of another picture may be right."""
    behind = made[count:]
    if not behind.any():
        return True
    right_too = int(np.count_nonzero(behind == right[count:]))
    return count >= _LEAST_SHARE * made.size and right_too <= _CHANCE * behind.size


def _unfilled(name: str, right: np.ndarray, made: np.ndarray) -> Transform | None:
    """Return the few indices of an axis that hold one number each, where all others are right."""
    pictures = picture_axes(right.shape)
    for axis, size in enumerate(right.shape):
        if pictures is not None and axis in pictures.places:  # bands of a letterbox
            continue
        rows, others = (np.moveaxis(each, axis, 0).reshape(size, -1) for each in (right, made))
        unlike = np.flatnonzero((rows != others).any(axis=1))
        if not 0 < 2 * unlike.size < size or np.ptp(others[unlike], axis=1).any():
            continue
        few, whole = rows.shape[1] < _LEAST_ROW, int(np.ptp(unlike)) == unlike.size - 1
        if few and not (whole and unlike.size >= LEAST_ROWS and not np.ptp(others[unlike]) and np.ptp(rows[unlike])):
            continue
        numbers = ", ".join(f"{each:g}" for each in dict.fromkeys(others[unlike][:, 0].tolist()))
        which, of = ", ".join(map(str, unlike)), ""
        if whole and unlike.size > LEAST_ROWS:
            which, of = f"{unlike[0]}..{unlike[-1]}", f" ({unlike.size} of {size})"
        words = f"has {numbers} everywhere in index {which} of axis {axis}{of}"
        return of_input(name, "unfilled", words, lambda x: np.where(right == made, x, made), "fill all of {x}",
                        axis=axis, indices=unlike.tolist())  # fmt: skip
    return None


def _renumbered(name: str, mine: np.ndarray, theirs: np.ndarray) -> Transform | None:
    """Return that numbers of tokens are others, each always the same, or one number in place of several."""
    if mine.dtype.kind not in "iu" or theirs.dtype.kind not in "iu" or mine.size < LEAST_ROWS:
        return None
    if mine.dtype.itemsize == 1 and picture_axes(mine.shape) is not None:  # pixels are no tokens
        return None
    unlike = mine != theirs
    pairs = {(int(was), int(now)) for was, now in zip(mine[unlike], theirs[unlike], strict=True)}
    sources, made = {was for was, _ in pairs}, {now for _, now in pairs}
    if len(made) == 1 and len(sources) > 1:
        (value,) = made
        words = f"has {value} in place of {len(sources)} other numbers, at {unlike.sum()} of {mine.size} places"
        cure = "use the tokenizer and the vocabulary of the reference: these tokens became unknown, or padding"
        return of_input(name, "tokens", words, lambda _: theirs, cure, value=value)
    kept = set(mine[~unlike].tolist())
    again = int(unlike.sum()) - len(pairs)  # places that bear a pair out, which few numbers would by chance
    bits = again * math.log2(np.ptp(theirs) + 1.0)
    if len(pairs) == len(sources) == len(made) and sources.isdisjoint(kept) and bits >= CHANCE_BITS:
        words = f"has each of {len(pairs)} numbers replaced by another, always by the same"
        cure = "use the vocabulary of the reference"
        if len(pairs) == 1:
            ((was, now),) = pairs
            ends = mine.ndim == 2 and bool(unlike[..., 0].any() or unlike[..., -1].any())
            words = f"has {now} in place of {was} everywhere{' (padding?)' if ends else ''}"
            cure = f"use the vocabulary of the reference, and pad with its number ({was})" if ends else cure
        return of_input(name, "tokens", words, lambda _: theirs, cure)
    return None


def _row_lengths(array: np.ndarray) -> list[int]:
    """Return how many numbers lie in a row: of the last axis, or of pixels with their channels."""
    found = []
    for axis in range(array.ndim - 1, 0, -1):
        length = math.prod(array.shape[axis:])
        if _LEAST_ROW <= length < array.size:
            found.append(length)
    return found[:2]


def _with_padding(name: str, length: int, stride: int) -> Transform:
    words = f"is memory with rows of {stride} numbers, {length} and padding, read as if it had none"
    cure = f"copy {length} numbers of each row of {{x}} and step {stride}, the stride of the buffer"
    return of_input(name, "row-stride", words, functools.partial(_padded, length=length, stride=stride), cure,
                    length=length, stride=stride)  # fmt: skip


def _without_padding(name: str, length: int, stride: int) -> Transform:
    words = f"lies in memory without padding, read as if its rows of {length} were {stride} numbers apart"
    cure = f"copy {{x}} row by row into the engine's buffer, to every {stride}th number"
    return of_input(name, "row-stride", words, functools.partial(_packed, length=length, stride=stride), cure,
                    length=length, stride=stride)  # fmt: skip


def _before_transposed(name: str, step: Transform, axis: int) -> Transform:
    """Return a transform of a picture's memory as libraries hold it, channels last, for one with channels first."""

    def apply(array: np.ndarray) -> np.ndarray:
        pixels = np.ascontiguousarray(np.moveaxis(array, axis, -1))
        return np.moveaxis(step({name: pixels})[name], -1, axis)

    words = f"{step.words}, with channels last, before it was transposed"
    return of_input(name, step.kind, words, apply, step.cure, **step.parameters)


def _first(name: str, count: int, size: int) -> Transform:
    share = f" (1/{size // count})" if size % count == 0 else ""
    words = f"has the first {count:,} of its {size:,} numbers{share}, and others, or 0, behind them"
    cure = "copy all of {x}: its number of elements times the bytes of one"
    return of_input(name, "part-copied", words, functools.partial(_cut, count=count), cure, count=count)


def _padded(array: np.ndarray, length: int, stride: int) -> np.ndarray:
    rows = array.reshape(-1, length)
    memory = np.zeros((len(rows), stride), array.dtype)
    memory[:, :length] = rows
    return memory.ravel()[: array.size].reshape(array.shape)


def _packed(array: np.ndarray, length: int, stride: int) -> np.ndarray:
    at = np.arange(array.size // length)[:, None] * stride + np.arange(length)
    flat = array.ravel()
    return np.where(at < flat.size, flat[np.minimum(at, flat.size - 1)], 0).reshape(array.shape)


def _cut(array: np.ndarray, count: int) -> np.ndarray:
    return np.where(np.arange(array.size).reshape(array.shape) < count, array, 0)


def _four_as_three(array: np.ndarray, axis: int, filled: float) -> np.ndarray:
    """Return pixels of three channels out of memory that holds four for each."""
    pixels = np.moveaxis(array, axis, -1)
    four = np.concatenate([pixels, np.full_like(pixels[..., :1], filled)], axis=-1)
    size = math.prod(pixels.shape[-3:])
    each = [picture.ravel()[:size].reshape(pixels.shape[-3:]) for picture in four.reshape(-1, *four.shape[-3:])]
    return np.moveaxis(np.stack(each).reshape(pixels.shape), -1, axis)
