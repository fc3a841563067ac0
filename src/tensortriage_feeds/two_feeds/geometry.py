"""Crops, letterboxes, shifts and sizes: which part of one picture lies where in another."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tensortriage_feeds.normalizations import numbers
from tensortriage_feeds.pictures import METHODS, Box, PictureAxes, part, resized, sampled
from tensortriage_feeds.transforms import Transform, of_input
from tensortriage_feeds.two_feeds.registration import ShownPart, shown

_CURES = {
    "crop": "resize the whole picture, or crop as the reference does",
    "letterbox": "stretch the picture to the whole size, or feed the reference a letterbox, too",
    "bands": "put the picture where the reference puts it, between bands of the same colour",
    "stretch": "keep the shape of the picture, as the reference does",
    "interpolation": "resize as the reference does",
    "shifted": "crop to the same part of the picture as the reference",
}
_LEAST_SHARE = 0.4
"""The least share of a picture's sides that is looked for as a part of it."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedPicture:
    """A picture as it may lie in another.

    Attributes:
        transform: The transform.
        made: The pixels.
        box: The part of the other picture that they are compared with.
    """

    transform: Transform
    made: np.ndarray
    box: Box


def geometries(name: str, mine: np.ndarray, theirs: np.ndarray, axes: PictureAxes) -> Iterator[PlacedPicture]:
    """Yield ways in which a picture may have got the size of another.

    Args:
        name: The input.
        mine: The right picture, or the original.
        theirs: The other one, in the same layout.
        axes: The axes of both.
    """
    size, given = _size(theirs, axes), _size(mine, axes)
    inner, whole = inside_bands(theirs, axes), (0, size[0], 0, size[1])
    pad = _colour(theirs, axes, inner) if inner != whole else []
    if (own := inside_bands(mine, axes)) != (0, given[0], 0, given[1]):
        how = ("stretch", "stretched without the bands of the reference's letterbox, to")
        if inner != whole:
            how = ("bands", "a letterbox with other bands than the reference's: around")
        yield from _fitted_in(name, how, part(mine, axes, own), axes, inner, pad)
    if inner != whole:
        yield from _fitted_in(name, ("letterbox", "a letterbox: bands around"), mine, axes, inner, pad)
    if size != given:
        kind = "interpolation" if _shape_kept(given, size) else "stretch"
        yield from _fitted_in(name, (kind, "resized to"), mine, axes, whole)
    yield from _moved(name, mine, theirs, axes)
    if size != given:
        yield from _parts(name, mine, axes, size)
    yield from _seen(name, (mine, own), (theirs, inner), axes)


def _size(array: np.ndarray, axes: PictureAxes) -> tuple[int, int]:
    return array.shape[axes.height], array.shape[axes.width]


def _shape_kept(given: tuple[int, int], size: tuple[int, int]) -> bool:
    return abs(given[0] * size[1] - given[1] * size[0]) <= max(given) * 0.02 * max(size)


def inside_bands(array: np.ndarray, axes: PictureAxes) -> Box:
    """Return the part of a picture that is inside bands of one colour; all of it where there are none."""
    height, width = _size(array, axes)
    found = (0, height, 0, width)
    for top, left in ((0, 0), (height - 1, width - 1)):  # a picture in a corner has its bands at the other one
        corner = part(array, axes, (top, top + 1, left, left + 1))
        unlike = np.any(array != corner, axis=tuple(axis for axis in range(array.ndim) if axis not in axes.places))
        rows, columns = np.flatnonzero(unlike.any(axis=1)), np.flatnonzero(unlike.any(axis=0))
        if rows.size:
            ends = (int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1)
            (top, left), (bottom, right) = map(max, found[::2], ends[::2]), map(min, found[1::2], ends[1::2])
            found = (top, bottom, left, right)
    return found


def _colour(array: np.ndarray, axes: PictureAxes, box: Box) -> list[float]:
    """Return the colour of the bands around a part of a picture, by channel, one number where all are equal."""
    height, width = _size(array, axes)
    at = (0, 0) if box[0] or box[2] else (height - 1, width - 1)
    corner = part(array, axes, (at[0], at[0] + 1, at[1], at[1] + 1))
    return numbers(np.moveaxis(corner, axes.channel, 0).reshape(array.shape[axes.channel], -1)[:, 0])


def _seen(
    name: str, mine: tuple[np.ndarray, Box], theirs: tuple[np.ndarray, Box], axes: PictureAxes
) -> Iterator[PlacedPicture]:
    """Yield the part of a picture that the other shows, resized, without the bands of both."""
    (array, own), (other, inner) = mine, theirs
    inside, wanted = part(array, axes, own), part(other, axes, inner)
    found = shown(inside, wanted, axes)
    if found is None:
        return
    given, size = _size(inside, axes), _size(wanted, axes)
    edges = np.subtract((found.rows, found.columns), [(0, length) for length in given])
    if np.abs(edges).max() < _SAME_EDGES:
        return
    kind, words = _told_part(found, given)
    top, bottom, left, right = found.within(given, size)
    if inner != (0, *_size(other, axes)[:1], 0, *_size(other, axes)[1:]):
        words = f"{words}, between bands of {_colour(other, axes, inner)}"
    box = [round(end + shift, 1) for ends, shift in ((found.rows, own[0]), (found.columns, own[2])) for end in ends]
    told = of_input(name, kind, f"is {words} (rows {box[0]:g} to {box[1]:g}, columns {box[2]:g} to {box[3]:g} of the "
                    "reference's)", lambda x: x, _CURES[kind], box=box)  # fmt: skip
    place = (inner[0] + top, inner[0] + bottom, inner[2] + left, inner[2] + right)
    for antialiased in (False, True):
        made = sampled(inside, axes, (found.rows, found.columns), size, antialiased=antialiased)
        yield PlacedPicture(told, part(made, axes, (top, bottom, left, right)), place)


_SAME_EDGES = 1.0
"""Pixels by which the edges of a part lie beside the picture's where only the way to resize is another."""
_WHOLE = 0.02
"""By so small a share of a side a part is the whole."""


def _told_part(found: ShownPart, given: tuple[int, int]) -> tuple[str, str]:
    shares = [(end - begin) / size for (begin, end), size in zip((found.rows, found.columns), given, strict=True)]
    if max(shares) <= 1 + _WHOLE:
        return "crop", "a part of the picture, resized"
    if min(shares) >= 1 - _WHOLE:
        return "stretch", "more of the picture than the reference shows, resized: the whole for a part"
    return "stretch", "the picture in another shape"


def _fitted_in(
    name: str, how: tuple[str, str], mine: np.ndarray, axes: PictureAxes, box: Box, pad: Sequence[float] = ()
) -> Iterator[PlacedPicture]:
    """Yield the whole picture, resized by each method to a part of the other."""
    size, (kind, words) = (box[1] - box[0], box[3] - box[2]), how
    more = {"pad": list(pad)} if pad else {}
    colour = f", bands of {pad[0]:g}" if len(pad) == 1 else f", bands of {list(pad)}" if pad else ""
    for method in METHODS:
        said = f"is {words} {size[0]} x {size[1]} pixels ({method}{colour})"
        told = of_input(name, kind, said, lambda x: x, _CURES[kind], box=list(box), method=method, **more)
        yield PlacedPicture(told, resized(mine, axes, size, method), box)


def _moved(name: str, mine: np.ndarray, theirs: np.ndarray, axes: PictureAxes) -> Iterator[PlacedPicture]:
    """Yield the picture at the place where it is most like the other, pixel for pixel; by its Fourier transform."""
    size, given = _size(theirs, axes), _size(mine, axes)
    around = tuple(max(one, other) * 2 for one, other in zip(size, given, strict=True))
    over = tuple(axis for axis in range(mine.ndim) if axis not in axes.places)
    one, other = (_standard(array.astype(np.float64).mean(axis=over)) for array in (mine, theirs))
    alike = np.fft.irfft2(np.fft.rfft2(one, around) * np.conj(np.fft.rfft2(other, around)), around)
    top, left = (int(place) for place in np.unravel_index(int(np.argmax(alike)), around))
    top, left = (at - full if at > full // 2 else at for at, full in zip((top, left), around, strict=True))
    if (top, left) == (0, 0) and size == given:
        return
    here = (max(top, 0), min(top + size[0], given[0]), max(left, 0), min(left + size[1], given[1]))
    there = (here[0] - top, here[1] - top, here[2] - left, here[3] - left)
    if min(here[1] - here[0], here[3] - here[2]) < max(int(_LEAST_SHARE * min(size)), 1):
        return
    kind = "crop" if size != given else "shifted"
    words = f"is the part of the picture from row {top} and column {left} onwards"
    told = of_input(name, kind, words, lambda x: x, _CURES[kind], top=top, left=left)
    yield PlacedPicture(told, part(mine, axes, here), there)


def _standard(array: np.ndarray) -> np.ndarray:
    return np.asarray(np.subtract(array, array.mean()))


def _parts(name: str, mine: np.ndarray, axes: PictureAxes, size: tuple[int, int]) -> Iterator[PlacedPicture]:
    """Yield middles of the picture, resized to the other's size: of the same shape as that, or as the picture."""
    given, whole = _size(mine, axes), (0, size[0], 0, size[1])
    square = min(given[0] / size[0], given[1] / size[1])
    most = (round(size[0] * square), round(size[1] * square))
    shares = [share / 64 for share in range(64, int(64 * _LEAST_SHARE), -1)]
    boxes = [(round(most[0] * share), round(most[1] * share)) for share in (0.875, *shares)]
    boxes += [(round(given[0] * share), round(given[1] * share)) for share in shares] if most != given else []
    for kept, method in itertools.product(dict.fromkeys(boxes), ("bilinear", "bilinear, antialiased", "nearest")):
        if kept == given:
            continue
        top, left = (given[0] - kept[0]) // 2, (given[1] - kept[1]) // 2
        box = (top, top + kept[0], left, left + kept[1])
        words = f"is the middle of the picture, {kept[0]} x {kept[1]} of {given[0]} x {given[1]} pixels, resized"
        told = of_input(name, "crop", f"{words} ({method})", lambda x: x, _CURES["crop"], box=list(box), method=method)
        yield PlacedPicture(told, resized(part(mine, axes, box), axes, size, method), whole)
