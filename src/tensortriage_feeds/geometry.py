"""Crops, letterboxes, shifts and sizes: which part of one picture lies where in another."""

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from tensortriage_feeds.pictures import METHODS, Box, PictureAxes, part, resized
from tensortriage_feeds.transforms import Transform, of_input

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
    inner, whole = _inside_bands(theirs, axes), (0, size[0], 0, size[1])
    if (own := _inside_bands(mine, axes)) != (0, given[0], 0, given[1]):
        kind, words = ("stretch", "stretched without the bands of the reference's letterbox, to")
        if inner != whole:
            kind, words = "bands", "a letterbox with other bands than the reference's: around"
        yield from _fitted_in(name, kind, part(mine, axes, own), axes, inner, words)
    if inner != whole:
        yield from _fitted_in(name, "letterbox", mine, axes, inner, "a letterbox: bands around")
    if size != given:
        kind = "interpolation" if _shape_kept(given, size) else "stretch"
        yield from _fitted_in(name, kind, mine, axes, whole, "resized to")
    yield from _moved(name, mine, theirs, axes)
    yield from _parts(name, mine, axes, size)


def _size(array: np.ndarray, axes: PictureAxes) -> tuple[int, int]:
    return array.shape[axes.height], array.shape[axes.width]


def _shape_kept(given: tuple[int, int], size: tuple[int, int]) -> bool:
    return abs(given[0] * size[1] - given[1] * size[0]) <= max(given) * 0.02 * max(size)


def _inside_bands(array: np.ndarray, axes: PictureAxes) -> Box:
    """Return the part of a picture that is inside bands of one colour; all of it where there are none."""
    corner = part(array, axes, (0, 1, 0, 1))
    unlike = np.any(array != corner, axis=tuple(axis for axis in range(array.ndim) if axis not in axes.places))
    rows, columns = np.flatnonzero(unlike.any(axis=1)), np.flatnonzero(unlike.any(axis=0))
    if not rows.size:
        return 0, unlike.shape[0], 0, unlike.shape[1]
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def _fitted_in(
    name: str, kind: str, mine: np.ndarray, axes: PictureAxes, box: Box, words: str
) -> Iterator[PlacedPicture]:
    """Yield the whole picture, resized by each method to a part of the other."""
    size = (box[1] - box[0], box[3] - box[2])
    for method in METHODS:
        said = f"is {words} {size[0]} x {size[1]} pixels ({method})"
        told = of_input(name, kind, said, lambda x: x, _CURES[kind], box=list(box), method=method)
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
