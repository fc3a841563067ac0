"""Pictures in arrays: which axes are channels, rows and columns, and how libraries resize.

Resizing is a product with one matrix for each axis, for all the ways in which OpenCV, Pillow and PyTorch do it.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

CHANNELS = (1, 3, 4)
"""Sizes by which an axis is told to hold channels."""
LEAST_SIDE = 4
"""A picture has as many rows and columns at least."""

Box = tuple[int, int, int, int]
"""Rows and columns of a part of a picture: top, bottom, left, right."""


@dataclasses.dataclass(frozen=True, slots=True)
class PictureAxes:
    """The axes of pictures in an array."""

    channel: int
    height: int
    width: int

    @property
    def places(self) -> tuple[int, int]:
        """The two axes of pixels."""
        return self.height, self.width

    def by_channel(self, array: np.ndarray) -> np.ndarray:
        """Return the numbers of each channel, ``[channels, n]``."""
        return np.moveaxis(array, self.channel, 0).reshape(array.shape[self.channel], -1)

    def per_channel(self, numbers: Sequence[float] | np.ndarray, rank: int) -> np.ndarray:
        """Return numbers, one for each channel, so that they meet an array of pictures element by element."""
        shape = [1] * rank
        shape[self.channel] = -1
        return np.asarray(numbers, np.float64).reshape(shape)


def picture_axes(shape: Sequence[int]) -> PictureAxes | None:
    """Return the axes of pictures in an array of this shape; None where it holds none.

    The axis of channels is the first or last one next to a batch, of 1, 3 or 4.
    """
    batch = len(shape) - 3
    if batch not in (0, 1):
        return None
    first, last = PictureAxes(batch, batch + 1, batch + 2), PictureAxes(batch + 2, batch, batch + 1)
    for axes in (first, last):
        if shape[axes.channel] in CHANNELS and min(shape[axes.height], shape[axes.width]) >= LEAST_SIDE:
            return axes
    return None


def part(array: np.ndarray, axes: PictureAxes, box: Box) -> np.ndarray:
    """Return a part of pictures."""
    index = [slice(None)] * array.ndim
    index[axes.height], index[axes.width] = slice(box[0], box[1]), slice(box[2], box[3])
    return array[tuple(index)]


def resized(array: np.ndarray, axes: PictureAxes, size: tuple[int, int], method: str) -> np.ndarray:
    """Return pictures of another size, float64.

    Args:
        array: The pictures.
        axes: Their axes.
        size: Rows and columns.
        method: One of `METHODS`.
    """
    found = np.asarray(array, np.float64)
    for axis, wanted in zip(axes.places, size, strict=True):
        if found.shape[axis] != wanted or method == ALIGNED:
            matrix = _matrix(method, found.shape[axis], wanted)
            found = np.moveaxis(np.tensordot(matrix, found, axes=(1, axis)), 0, axis)
    return found


def sampled(array: np.ndarray, axes: PictureAxes, spans: Sequence[tuple[float, float]], size: tuple[int, int],
            *, antialiased: bool) -> np.ndarray:  # fmt: skip
    """Return parts of pictures that begin and end between pixels, bilinear, float64; the border pixel repeats.

    Args:
        array: The pictures.
        axes: Their axes.
        spans: Begin and end, of rows and of columns, in pixels.
        size: Rows and columns of the result.
        antialiased: Whether the kernel is as wide as a pixel of the result.
    """
    found = np.asarray(array, np.float64)
    for axis, (begin, end), wanted in zip(axes.places, spans, size, strict=True):
        step = (end - begin) / wanted
        centres = begin + (np.arange(wanted) + 0.5) * step - 0.5
        wide = max(step, 1.0) if antialiased else 1.0
        kernel = functools.partial(_wide_triangle, width=wide)
        matrix = _at(centres, found.shape[axis], kernel, math.ceil(wide))
        found = np.moveaxis(np.tensordot(matrix, found, axes=(1, axis)), 0, axis)
    return found


ALIGNED = "bilinear, corners aligned"


@functools.lru_cache(maxsize=512)
def _matrix(method: str, given: int, wanted: int) -> np.ndarray:
    return METHODS[method](given, wanted)


def _nearest(given: int, wanted: int, *, half: float) -> np.ndarray:
    matrix = np.zeros((wanted, given))
    places = np.floor((np.arange(wanted) + half) * given / wanted).astype(int)
    matrix[np.arange(wanted), np.clip(places, 0, given - 1)] = 1.0
    return matrix


def _at(centres: np.ndarray, given: int, kernel: Callable[[np.ndarray], np.ndarray], reach: float) -> np.ndarray:
    """Return the matrix of a kernel around places in the given axis; outside of it the border pixel repeats."""
    matrix = np.zeros((len(centres), given))
    steps = np.arange(-math.ceil(reach), math.ceil(reach) + 1)
    for row, centre in enumerate(centres):
        taken = math.floor(centre) + steps
        weights = kernel(taken - centre)
        np.add.at(matrix[row], np.clip(taken, 0, given - 1), weights)
    return np.asarray(np.divide(matrix, matrix.sum(axis=1, keepdims=True)))


def _centres(given: int, wanted: int) -> np.ndarray:
    return (np.arange(wanted) + 0.5) * given / wanted - 0.5


def _triangle(distance: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(1.0 - np.abs(distance), 0.0, None))


def _wide_triangle(distance: np.ndarray, width: float) -> np.ndarray:
    return _triangle(distance / width)


def _cubic(distance: np.ndarray, sharpness: float) -> np.ndarray:
    """Return Keys' kernel (1981); OpenCV and PyTorch have a sharpness of -0.75, Pillow of -0.5."""
    at, a = np.abs(distance), sharpness
    near = (a + 2) * at**3 - (a + 3) * at**2 + 1
    far = a * at**3 - 5 * a * at**2 + 8 * a * at - 4 * a
    return np.where(at <= 1, near, np.where(at < 2, far, 0.0))


def _widened(given: int, wanted: int, kernel: Callable[[np.ndarray], np.ndarray], reach: float) -> np.ndarray:
    """Return a kernel that is as wide as a pixel of the result, as Pillow does it; the border is left out."""
    scale = max(given / wanted, 1.0)
    weights = kernel((np.arange(given)[None] - _centres(given, wanted)[:, None]) / scale)
    return np.asarray(np.divide(weights, weights.sum(axis=1, keepdims=True)))


def _area(given: int, wanted: int) -> np.ndarray:
    edges = np.arange(wanted + 1) * given / wanted
    low, high = np.arange(given)[None], np.arange(given)[None] + 1
    covered = np.minimum(high, edges[1:, None]) - np.maximum(low, edges[:-1, None])
    covered = np.maximum(covered, 0.0)
    return np.asarray(np.divide(covered, covered.sum(axis=1, keepdims=True)))


METHODS: dict[str, Callable[[int, int], np.ndarray]] = {
    "bilinear": lambda given, wanted: _at(_centres(given, wanted), given, _triangle, 1),
    "nearest": lambda given, wanted: _nearest(given, wanted, half=0.0),
    "nearest, of pixel centres": lambda given, wanted: _nearest(given, wanted, half=0.5),
    "bicubic": lambda given, wanted: _at(_centres(given, wanted), given, lambda at: _cubic(at, -0.75), 2),
    "area": _area,
    "bilinear, antialiased": lambda given, wanted: _widened(given, wanted, _triangle, 1),
    "bicubic, antialiased": lambda given, wanted: _widened(given, wanted, lambda at: _cubic(at, -0.5), 2),
    ALIGNED: lambda given, wanted: _at(np.arange(wanted) * ((given - 1) / max(wanted - 1, 1)), given, _triangle, 1),
}
"""How libraries resize: OpenCV's and PyTorch's words; `antialiased` is Pillow's."""
