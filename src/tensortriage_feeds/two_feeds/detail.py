"""Pictures that show the same in other fine detail, and a quick look at which of two leaves more."""

from collections.abc import Callable, Iterator

import numpy as np

from tensortriage_feeds.arrays.fits import EXACT, UNLIKE, fitted, unexplained
from tensortriage_feeds.pictures import PictureAxes, picture_axes
from tensortriage_feeds.transforms import Transform, of_input
from tensortriage_feeds.two_feeds.registration import shown

FINER = 4.0
"""By so much less pictures differ over blocks than by pixel where they differ in fine detail alone: of four photographs
resized to 64 and 224 by Pillow and by OpenCV 5.5 to 10.7 times, to 32 at least 4.2, of cropped ones at most 3.8."""
FINER_IN_PLACE = 2.5
"""The same where each picture is seen to show the whole of the other, to a pixel: no crop is left to tell apart."""
_ROUNDED = 0.02
"""The largest difference of pictures that 8 bits round: 0.29 of 255 steps, at a deviation of 0.06 of their range."""
_EVEN = 2.0
"""Peak over RMS up to which a difference is one of rounding: sqrt(3), a little more where channels have other steps; of
another filter it is 4 and more."""
_LARGE, _EVERY, _ASKED, _MORE = 16384, 4, 64, 1.5
"""Numbers of a picture of which every fourth row and column is asked first, or fewer, down to so many rows and columns,
and by how much more these must leave than another way, or than what is named at all."""
_COMMON = 0.3
"""Correlation of the fine detail of a picture that was resized in two ways, at least: of 560 pairs (28 pictures, by
Pillow and by OpenCV, to 48 and 128) 0.56 at least, of pairs of other pictures 0.05 at most in 99 %."""
_NOISE = 0.08
"""Correlation of a difference with a picture's fine detail, and with its own next pixel, at most, of noise: of 4096
numbers by chance three times 1/64, of three noisy inputs 0.03 at most; of 84 pairs of one picture resized by two of
the filters of `pictures` 0.39 at least."""
_BLOCK, _BLOCKS = 8, 4
"""Pixels along a block at most, and blocks along a picture at least."""


def in_detail(name: str, mine: np.ndarray, theirs: np.ndarray) -> Iterator[tuple[Transform, float]]:
    """Yield that pictures of one size differ in fine detail alone, as after another filter; see `FINER`."""
    axes = picture_axes(mine.shape)
    if axes is None or mine.shape != theirs.shape or mine.dtype.kind != "f":
        return
    block = min(_BLOCK, mine.shape[axes.height] // _BLOCKS, mine.shape[axes.width] // _BLOCKS)
    if block < 2:
        return
    by_pixel, by_block = (
        unexplained(_averaged(mine, axes, size), _averaged(theirs, axes, size), None) for size in (1, block)
    )
    finer = by_block * FINER <= by_pixel
    if not finer and by_block * FINER_IN_PLACE <= by_pixel and by_pixel > _ROUNDED and by_block < UNLIKE / 2:
        finer = _in_place(mine, theirs, axes)
    if by_block > EXACT and finer and not _is_rounded(mine, theirs) and _same_detail(mine, theirs, axes, block):
        words = (
            f"shows the same in other fine detail (off by {by_pixel:.2g} of its deviation by pixel, and "
            f"{by_block:.2g} over blocks of {block} x {block}): it was resized by another filter (with or without "
            "antialiasing) or grid, compressed, or has noise"
        )
        cure = "resize {x} by the library, the interpolation and the antialiasing of training"
        kind = "resampling"
        if _is_noise(mine, theirs, axes, block):
            kind, cure = "noise", "hand over the same recording of {x}, if outputs are to be the same"
            words = (
                f"has noise of {by_pixel:.2g} of its deviation: another recording, dither, compression, an augmentation"
            )
        yield of_input(name, kind, words, lambda x: x, cure, block=block), by_block


def _same_detail(mine: np.ndarray, theirs: np.ndarray, axes: PictureAxes, block: int) -> bool:
    """Return whether pictures have something in common of what their surroundings do not show."""
    return _alike(_rest(mine, axes, block), _rest(theirs, axes, block)) >= _COMMON


def _rest(array: np.ndarray, axes: PictureAxes, block: int) -> np.ndarray:
    """Return pictures less what is around each pixel."""
    wide = np.moveaxis(array.astype(np.float64), (axes.height, axes.width), (-2, -1))
    around = np.lib.stride_tricks.sliding_window_view(wide, (block, block), (-2, -1)).mean((-2, -1))
    at = block // 2
    return np.asarray(wide[..., at : at + around.shape[-2], at : at + around.shape[-1]] - around)


def _alike(one: np.ndarray, other: np.ndarray) -> float:
    size = float(np.sqrt(np.sum(one**2) * np.sum(other**2)))
    return float(np.sum(one * other)) / size if size else 0.0


def _is_noise(mine: np.ndarray, theirs: np.ndarray, axes: PictureAxes, block: int) -> bool:
    """Return whether a difference has nothing to do with the picture, nor one pixel of it with the next."""
    off = theirs.astype(np.float64) - mine
    down, along = (np.moveaxis(off, axis, 0) for axis in axes.places)
    common = (_alike(_rest(mine, axes, block), _rest(off, axes, block)), _alike(down[1:], down[:-1]),
              _alike(along[1:], along[:-1]))  # fmt: skip
    return max(map(abs, common)) <= _NOISE


def _is_rounded(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Return whether a difference is spread evenly, as of rounding to steps: its peak is 1.7 times its RMS."""
    left = np.abs(theirs.astype(np.float64) - mine)
    return bool(left.max() <= _EVEN * np.sqrt(np.mean(left**2)))


def leaves_more(made: np.ndarray, theirs: np.ndarray, least: float) -> bool:
    """Return whether a picture leaves more than another way did, or than is named, by one pixel of 16 at most."""
    axes = picture_axes(theirs.shape)
    if axes is None or theirs.size < _LARGE or not np.isfinite(least):
        return False
    return fitted(few_of(made), few_of(theirs), axes)[2] > _MORE * min(least, UNLIKE)


def changed_leaves_more(change: Callable[[np.ndarray], np.ndarray], one: np.ndarray, other: np.ndarray,
                        least: float) -> bool:  # fmt: skip
    """Return the same of a picture of which each pixel is changed by itself, without changing all of them."""
    axes = picture_axes(other.shape)
    if axes is None or other.size < _LARGE or not np.isfinite(least):
        return False
    return fitted(change(few_of(one)), few_of(other), axes)[2] > _MORE * min(least, UNLIKE)


def few_of(picture: np.ndarray) -> np.ndarray:
    """Return some rows and columns of a picture."""
    axes = picture_axes(picture.shape)
    if axes is None:
        return picture
    index = [slice(None)] * picture.ndim
    for axis in axes.places:
        index[axis] = slice(None, None, max(_EVERY, picture.shape[axis] // _ASKED))
    return picture[tuple(index)]


def _averaged(array: np.ndarray, axes: PictureAxes, size: int) -> np.ndarray:
    """Return a picture averaged over square blocks; what does not fill one at the end is left out."""
    wide = np.moveaxis(array.astype(np.float64), (axes.height, axes.width), (-2, -1))
    height, width = (length - length % size for length in wide.shape[-2:])
    blocks = wide[..., :height, :width].reshape(*wide.shape[:-2], height // size, size, width // size, size)
    return np.asarray(blocks.mean((-3, -1)))


def _in_place(mine: np.ndarray, theirs: np.ndarray, axes: PictureAxes) -> bool:
    """Return whether one picture shows what the other does, each edge to a pixel."""
    found = shown(mine, theirs, axes)
    size = [mine.shape[axis] for axis in axes.places]
    return found is not None and bool(
        np.abs(np.subtract((found.rows, found.columns), [(0, n) for n in size])).max() < 1
    )
