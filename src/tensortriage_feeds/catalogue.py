"""Mistakes of programs with pictures and other numbers: the candidates for one input, by family, likeliest first.

InputCandidates of different families may have been made together (channels, numbers, places): `search` composes them.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from tensortriage_feeds.arrays.colours import colours
from tensortriage_feeds.arrays.functions import functions
from tensortriage_feeds.arrays.input_numbers import FITTED, rounded, scaled, scales
from tensortriage_feeds.memory import LEAST_ROWS, memory_candidates
from tensortriage_feeds.normalizations import Renormalized
from tensortriage_feeds.pictures import Box, PictureAxes, part, picture_axes, resized
from tensortriage_feeds.transforms import Transform, of_input

_CROPS = (0.875, 0.9, 0.8, 0.75, 0.5, 0.95)
"""Shares of a picture's sides that are cut out of its middle: 224 of 256 is the usual one."""
_BANDS = ((3, 4), (9, 16), (2, 3), (1, 2))
"""Shapes of pictures that a letterbox leaves as they are: television, video, photograph, two to one."""
_CORNERS = {"middle": None, "upper left corner": (0, 0)}
"""Where libraries put a letterboxed picture."""
_MOST_TOLD = 4
"""Numbers of a column that are told one by one where they become others."""
_MOST_COLUMNS = 24
"""Columns of a table whose exchange is tried, pair by pair."""
_FRAMES = (32, 64, 128, 160, 256, 320, 400, 512)
"""Samples that a program may leave out at an end: powers of two, and 10 to 25 ms of 16 kHz."""
_METHODS = ("bilinear", "nearest", "area", "bicubic")
_CHANNEL_WORDS = {
    (2, 1, 0): "has its channels reversed (BGR for RGB, or the other way round)",
    (2, 1, 0, 3): "has its first three channels reversed (BGRA for RGBA, or the other way round)",
}


@dataclasses.dataclass(frozen=True, slots=True)
class InputCandidates:
    """The transforms of one input by what they change; those of different families may come together."""

    channels: tuple[Transform, ...] = ()
    numbers: tuple[Transform, ...] = ()
    places: tuple[Transform, ...] = ()
    others: tuple[Transform, ...] = ()

    @property
    def alone(self) -> tuple[Transform, ...]:
        """All of them, in the order in which they are tried alone."""
        return (*self.channels, *self.numbers, *self.places, *self.others)


def candidates(name: str, array: np.ndarray) -> InputCandidates:
    """Return the possible mistakes in an input of numbers.

    Args:
        name: The input.
        array: The right tensor.
    """
    if array.dtype.kind not in "fiu" or array.size < 2:
        return InputCandidates()
    axes = picture_axes(array.shape)
    if axes is None:
        places = itertools.chain(_orders(name, array), memory_candidates(name, array))
        floats = array.dtype.kind == "f"
        others = (*(rounded(name, array) if floats else ()), *_empty(name, array))
        numbers = itertools.chain(
            scales(name, array, None), *((functions(name, array, None), _columns(name, array)) if floats else ())
        )
        return InputCandidates(numbers=tuple(numbers), places=tuple(places), others=others)
    return InputCandidates(
        tuple(_channels(name, array, axes)),
        tuple(scales(name, array, axes)),
        tuple(itertools.chain(_places(name, array, axes), _rows(name, array))),
        tuple(
            itertools.chain(
                memory_candidates(name, array),
                _exchanges(name, array),
                _resampled(name, array, axes),
                _shifts(name, axes),
                rounded(name, array, axes),
                _empty(name, array),
                *((functions(name, array, axes), colours(name, array, axes)) if array.dtype.kind == "f" else ()),
            )
        ),
    )


def _channels(name: str, array: np.ndarray, axes: PictureAxes) -> Iterator[Transform]:
    count, axis = array.shape[axes.channel], axes.channel
    orders = sorted(itertools.permutations(range(min(count, 3))), reverse=True) if count > 1 else []
    for three in orders:
        order = (*three, *range(3, count))
        if order == tuple(range(count)):
            continue
        words = _CHANNEL_WORDS.get(order, f"has its channels in the order {list(order)}")
        kind = "channels-reversed" if order in _CHANNEL_WORDS else "channels-permuted"
        back = [order.index(place) for place in range(count)]
        cure = f"{{x}} = {{x}}[{', '.join([':'] * axis + [str(back)])}]"
        if order in _CHANNEL_WORDS and count == len(three):
            cure = f"{{x}} = {{x}}[{', '.join([':'] * axis + ['::-1'])}]"
        yield of_input(name, kind, words, functools.partial(_taken, order, axis), cure, axis=axis, order=list(order))
    if count > 1:
        yield of_input(name, "gray", "has the first channel in all channels", lambda x: np.take(x, [0] * count, axis),
                       "read the picture with its colours", axis=axis)  # fmt: skip
        yield of_input(name, "gray", "has the average of the channels in all of them",
                       lambda x: np.repeat(x.mean(axis=axis, keepdims=True), count, axis),
                       "read the picture with its colours", axis=axis)  # fmt: skip


def _taken(order: tuple[int, ...], axis: int, array: np.ndarray) -> np.ndarray:
    return np.take(array, order, axis=axis)


def _places(name: str, array: np.ndarray, axes: PictureAxes) -> Iterator[Transform]:
    height, width = axes.places
    square = array.shape[height] == array.shape[width]
    flips = {
        "flipped-horizontally": ("is flipped from left to right", (width,)),
        "flipped-vertically": ("is flipped upside down", (height,)),
        "rotated": ("is rotated by 180 degrees", (height, width)),
    }
    for kind, (words, over) in flips.items():
        yield of_input(name, kind, words, functools.partial(np.flip, axis=over),
                       f"{{x}} = np.flip({{x}}, axis={over})", axes=list(over))  # fmt: skip
    for kind, words, change, cure in _layouts(array, axes):
        yield of_input(name, kind, words, change, cure)
    if square:
        yield of_input(name, "transposed", "has width and height exchanged", lambda x: np.swapaxes(x, height, width),
                       f"{{x}} = np.swapaxes({{x}}, {height}, {width})", axes=[height, width])  # fmt: skip
        for turns in (1, 3):
            yield of_input(name, "rotated", f"is rotated by {90 * turns} degrees counterclockwise",
                           functools.partial(np.rot90, k=turns, axes=(height, width)),
                           f"{{x}} = np.rot90({{x}}, {4 - turns}, axes=({height}, {width}))",
                           degrees=90 * turns)  # fmt: skip
        return
    yield of_input(name, "transposed", "has width and height exchanged, read as if they were not",
                   lambda x: np.swapaxes(x, height, width).reshape(x.shape),
                   "pass it as (height, width), as it lies in memory", axes=[height, width])  # fmt: skip
    yield of_input(name, "transposed", "was made as (width, height) and then turned back",
                   lambda x: np.swapaxes(x.reshape(np.swapaxes(x, height, width).shape), height, width),
                   "reshape to (height, width), and transpose nothing", axes=[height, width])  # fmt: skip


def _layouts(
    array: np.ndarray, axes: PictureAxes
) -> Iterator[tuple[str, str, Callable[[np.ndarray], np.ndarray], str]]:
    """Yield channels last where they ought to be first, and the other way round, by a reshape for a transposition."""
    if array.shape[axes.channel] == 1:
        return
    rank, first = array.ndim, axes.channel < axes.height
    to_other = (
        [*range(rank - 3), rank - 2, rank - 1, rank - 3] if first else [*range(rank - 3), rank - 1, rank - 3, rank - 2]
    )
    back = [to_other.index(place) for place in range(rank)]
    other = tuple(array.shape[axis] for axis in to_other)
    mine, theirs = ("NCHW", "NHWC") if first else ("NHWC", "NCHW")
    yield (
        "layout",
        f"holds the numbers of {theirs}, reshaped to {mine} instead of transposed",
        lambda x: np.transpose(x, to_other).reshape(x.shape),
        f"transpose from {theirs} with {tuple(back)} instead of reshaping",
    )
    yield (
        "layout",
        f"is transposed as if it were {theirs}, though it is already {mine}",
        lambda x: np.transpose(x.reshape(other), back),
        "leave out the transposition",
    )


def _rows(name: str, array: np.ndarray) -> Iterator[Transform]:
    """Yield the rows of a batch in other places."""
    if array.ndim < 2 or array.shape[0] < 2:
        return
    yield of_input(name, "batch-order", "has the rows of its batch in reverse", lambda x: x[::-1], "{x} = {x}[::-1]")
    for step in (1, -1):
        yield of_input(name, "batch-order", f"has the rows of its batch moved by {step}",
                       functools.partial(np.roll, shift=step, axis=0), f"{{x}} = np.roll({{x}}, {-step}, axis=0)",
                       shift=step)  # fmt: skip
    yield from _alone(name, array, 0)


def _alone(name: str, array: np.ndarray, axis: int) -> Iterator[Transform]:
    """Yield the first or the last index of an axis in place of all: a buffer that all of them share."""
    size = array.shape[axis]
    for place in (0, size - 1):
        words = f"has its {'last' if place else 'first'} row in all rows"
        words = words if axis == 0 else f"has its index {place} of axis {axis} everywhere along it"
        yield of_input(name, "other-indices" if axis else "batch-order", words,
                       functools.partial(_taken, (place,) * size, axis), "copy every one to a place of its own",
                       axis=axis, order=[place] * size)  # fmt: skip


def _empty(name: str, array: np.ndarray) -> Iterator[Transform]:
    """Yield numbers that were never filled: all, or the first or last ones of a long row (a context, a tail)."""
    yield of_input(name, "constant", "is 0 everywhere", np.zeros_like, "hand {x} over: it is lost on its way")
    length = array.shape[-1] if picture_axes(array.shape) is None else 0
    for count, first in itertools.product((each for each in _FRAMES if 2 * each <= length), (True, False)):
        where = slice(0, count) if first else slice(length - count, length)
        yield of_input(name, "unfilled", f"has 0 in its {'first' if first else 'last'} {count} of {length} numbers",
                       functools.partial(_zeroed, where=where), "fill all of {x}", axis=array.ndim - 1,
                       indices=[where.start, where.stop - 1])  # fmt: skip


def _zeroed(array: np.ndarray, where: slice) -> np.ndarray:
    found = array.copy()
    found[..., where] = 0
    return found


def _repeated(array: np.ndarray, times: int, axis: int) -> np.ndarray:
    return np.take(array, np.arange(array.shape[axis]) // times, axis)


def _exchanged(array: np.ndarray, one: int, other: int) -> np.ndarray:
    return np.swapaxes(array, one, other).reshape(array.shape)


def _orders(name: str, array: np.ndarray) -> Iterator[Transform]:
    """Yield moved elements of an input that is not a picture."""
    yield from _rows(name, array)
    if array.ndim == 2 and len(array) >= LEAST_ROWS and 2 < array.shape[1] <= _MOST_COLUMNS:
        for one, other in itertools.combinations(range(array.shape[1]), 2):
            order = [{one: other, other: one}.get(at, at) for at in range(array.shape[1])]
            yield of_input(name, "column-order", f"has columns {one} and {other} exchanged",
                           functools.partial(_taken, tuple(order), 1), f"{{x}} = {{x}}[:, {order}]",
                           order=order)  # fmt: skip
    for axis in range(1 if array.ndim > 1 else 0, array.ndim):
        if array.shape[axis] > 1:
            yield from _alone(name, array, axis) if array.ndim > 2 else ()
            for times, many in ((2, "two"), (3, "three")):
                words = f"has every index of axis {axis} {times} times: {many} channels one after the other, "
                yield of_input(name, "resampling", f"{words}read as one, or frames of another rate",
                               functools.partial(_repeated, times=times, axis=axis),
                               f"take axis {axis} of {{x}} as the reference does, one channel, at its rate", axis=axis,
                               ratio=[1, times])  # fmt: skip
            yield of_input(name, "reversed", f"is reversed along axis {axis}", functools.partial(np.flip, axis=axis),
                           f"{{x}} = np.flip({{x}}, axis={axis})", axis=axis)  # fmt: skip
            for step in (1, -1):
                yield of_input(name, "shifted", f"is moved by {step} along axis {axis}",
                               functools.partial(np.roll, shift=step, axis=axis),
                               f"{{x}} = np.roll({{x}}, {-step}, axis={axis})", axis=axis, shift=step)  # fmt: skip
    yield from _exchanges(name, array)


def _exchanges(name: str, array: np.ndarray) -> Iterator[Transform]:
    """Yield two axes exchanged, as a buffer is filled by loops in another order: frames before channels."""
    for one, other in itertools.combinations(range(array.ndim), 2):
        if min(array.shape[one], array.shape[other]) > 1:
            yield of_input(name, "transposed", f"has axes {one} and {other} exchanged, read as if they were not",
                           functools.partial(_exchanged, one=one, other=other),
                           f"pass it with axes {one} and {other} in their places",
                           axes=[one, other])  # fmt: skip


def _columns(name: str, array: np.ndarray) -> Iterator[Transform]:
    """Yield changes of one column of a table: another unit (shares for percent), a function of its numbers."""
    columns = array.shape[1] if array.ndim == 2 and len(array) >= LEAST_ROWS else 0
    if not 1 < columns <= _MOST_COLUMNS:
        return
    yield from _units(name, columns)
    for column in range(columns):
        numbers = array[:, column].copy()
        yield from (_of_column(name, each, column, numbers) for each in functions(name, numbers, None))


def _of_column(name: str, each: Transform, column: int, numbers: np.ndarray) -> Transform:
    """Return a transform of a tensor for one of its columns alone."""
    made = np.asarray(each.apply({name: numbers.astype(np.float64)})[name])
    few = sorted({*zip(numbers[made != numbers].tolist(), made[made != numbers].tolist(), strict=True)})
    told = f" ({', '.join(f'{was:g} is {now:g}' for was, now in few)})" if 0 < len(few) <= _MOST_TOLD else ""

    def apply(array: np.ndarray) -> np.ndarray:
        found = array.astype(np.float64)
        found[:, column] = each.apply({name: found[:, column]})[name]
        return found

    return of_input(name, each.kind, f"{each.words} in index {column} of axis 1{told}, elsewhere as it is", apply,
                    f"of column {column}: {each.cure}", **each.parameters, axis=1, indices=[column])  # fmt: skip


def _units(name: str, columns: int) -> Iterator[Transform]:
    """Yield one column of a table in another unit: metres for millimetres."""
    for column, factor in itertools.product(range(columns), (1000.0, 0.001, 100.0, 0.01, 10.0, 0.1)):
        by = np.where(np.arange(columns) == column, factor, 1.0)
        yield scaled(name, Renormalized("normalization", FITTED, by, np.zeros(columns)), PictureAxes(1, 0, 0), 2)


def _shifts(name: str, axes: PictureAxes) -> Iterator[Transform]:
    for axis, step in itertools.product(axes.places, (1, -1)):
        way = ("down" if step > 0 else "up") if axis == axes.height else ("right" if step > 0 else "left")
        yield of_input(name, "shifted", f"is moved {way} by one pixel",
                       functools.partial(np.roll, shift=step, axis=axis),
                       f"{{x}} = np.roll({{x}}, {-step}, axis={axis})", axis=axis, shift=step)  # fmt: skip


def _resampled(name: str, array: np.ndarray, axes: PictureAxes) -> Iterator[Transform]:
    """Yield parts of a picture for the whole, and a picture with bands next to it, at the size of the right one."""
    size = (array.shape[axes.height], array.shape[axes.width])
    for share, method in itertools.product(_CROPS, _METHODS):
        kept = [max(round(side * share), 1) for side in size]
        top, left = ((side - inner) // 2 for side, inner in zip(size, kept, strict=True))
        box = (top, top + kept[0], left, left + kept[1])
        yield of_input(name, "crop", f"is the middle {share:.1%} of the picture's sides, resized ({method})",
                       functools.partial(_cropped, axes=axes, box=box, size=size, method=method),
                       "resize the whole picture instead of its middle", box=list(box), method=method)  # fmt: skip
    least = float(array.min())
    pads = dict.fromkeys((0.0, 114 / 255, 114.0, 0.5, 128.0, least))
    for (short, long), wide, pad in itertools.product(_BANDS, (True, False), pads):
        inner = (round(size[0] * short / long), size[1]) if wide else (size[0], round(size[1] * short / long))
        for method, (where, corner) in itertools.product(_METHODS[:2], _CORNERS.items()):
            yield of_input(name, "letterbox", f"is a letterbox: {inner[0]} x {inner[1]} pixels in its {where} "
                           f"({method}), next to bands of {pad:.4g}",
                           functools.partial(_letterbox, axes=axes, inner=inner, pad=pad, method=method, place=corner),
                           "stretch the picture to the whole size, or feed the reference a letterbox, too",
                           size=list(inner), pad=pad, method=method, place=where)  # fmt: skip
    for factor, method in itertools.product((2, 4), _METHODS):
        small = (max(size[0] // factor, 1), max(size[1] // factor, 1))
        yield of_input(name, "interpolation", f"was shrunk by {factor} and enlarged again ({method})",
                       functools.partial(_through, axes=axes, small=small, method=method),
                       "resize once, from the original", factor=factor, method=method)  # fmt: skip


def _cropped(array: np.ndarray, axes: PictureAxes, box: Box, size: tuple[int, int], method: str) -> np.ndarray:
    return resized(part(array, axes, box), axes, size, method)


def _letterbox(
    array: np.ndarray,
    axes: PictureAxes,
    inner: tuple[int, int],
    pad: float,
    method: str,
    place: tuple[int, int] | None,
) -> np.ndarray:
    size = (array.shape[axes.height], array.shape[axes.width])
    return boxed(resized(array, axes, inner, method), axes, size, pad, place)


def _through(array: np.ndarray, axes: PictureAxes, small: tuple[int, int], method: str) -> np.ndarray:
    size = (array.shape[axes.height], array.shape[axes.width])
    return resized(resized(array, axes, small, method), axes, size, method)


def boxed(
    inner: np.ndarray, axes: PictureAxes, size: tuple[int, int], pad: float, place: tuple[int, int] | None = None
) -> np.ndarray:
    """Return a picture with bands next to it; in the middle unless its upper left corner is given."""
    shape = list(inner.shape)
    shape[axes.height], shape[axes.width] = size
    found = np.full(shape, pad, np.float64)
    rows, columns = inner.shape[axes.height], inner.shape[axes.width]
    top, left = place or ((size[0] - rows) // 2, (size[1] - columns) // 2)
    part(found, axes, (top, top + rows, left, left + columns))[...] = inner
    return found
