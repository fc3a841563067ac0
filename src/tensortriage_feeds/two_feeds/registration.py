"""Which part of one picture, resized, does another show? Found by looking, where the two have no pixel in common.

Small copies of both are laid over each other at every extent and place that crops and stretched pictures have; the
best are moved until nothing comes nearer (Lucas and Kanade 1981, with a scale and an offset of the numbers).
"""

import dataclasses

import numpy as np

from tensortriage_feeds.pictures import PictureAxes, resized

_COARSE, _FINE = 24, 160
"""Rows and columns of the copies that are laid over each other, and most of those that are moved."""
_EXTENTS = 1.05 ** np.arange(-18, 19)
"""Extents of what is shown, as a share of the picture's: 0.42 to 2.4."""
_PLACES = (0.0, 0.5, 1.0)
"""Where a part begins: at the upper or left end, in the middle, or at the lower or right end."""
_LEAST_COMMON = 0.4
"""The least share of rows and of columns that both show."""
_LIKE = 0.8
"""Correlation of the coarse copies from which on the place is refined: of 40 pairs of photographs of other things, each
also mirrored, 0.76 at most; of one in two crops 0.93 at least."""
_STARTS, _STEPS = 3, 25
_STILL = 1e-3
"""Pixels by which the last step may move."""

Span = tuple[float, float]


@dataclasses.dataclass(frozen=True, slots=True)
class ShownPart:
    """The part of one picture that another shows, in pixels of the first; it may reach beyond it.

    Attributes:
        rows: First row and the end of the last one.
        columns: The same for columns.
    """

    rows: Span
    columns: Span

    def within(self, given: tuple[int, int], size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Return the rows and columns of a picture of `size` that show something of one of `given`: top to right."""
        return (*_valid(self.rows, given[0], size[0]), *_valid(self.columns, given[1], size[1]))


def shown(mine: np.ndarray, theirs: np.ndarray, axes: PictureAxes) -> ShownPart | None:
    """Return which part of a picture another one shows, resized; None where it is found to show none.

    Args:
        mine: The picture.
        theirs: The other one, in the same layout.
        axes: The axes of both.
    """
    over = tuple(axis for axis in range(mine.ndim) if axis not in axes.places)
    one, other = (np.asarray(array.astype(np.float64).mean(axis=over)) for array in (mine, theirs))
    if min(*one.shape, *other.shape) < _COARSE or not (np.ptp(one) and np.ptp(other)):
        return None
    starts = _coarse(_small(one, _COARSE), _small(other, _COARSE))
    small, seen = _small(one, _FINE), _small(other, _FINE)
    refined = [found for start in starts if (found := _refined(small, seen, start)) is not None]
    if not refined:
        return None
    _, best = min(refined, key=lambda each: each[0])
    rows, columns = (
        (at * full / size, end * full / size)
        for (at, end), full, size in zip((best[:2], best[2:]), one.shape, small.shape, strict=True)
    )
    return ShownPart(rows, columns)


def _small(picture: np.ndarray, most: int) -> np.ndarray:
    size = (min(picture.shape[0], most), min(picture.shape[1], most))
    return resized(picture[None], PictureAxes(0, 1, 2), size, "area").reshape(size)


def _valid(span: Span, given: int, size: int) -> tuple[int, int]:
    """Return the first and the end of `size` pixels of a span that lie in `given` ones."""
    centres = _centres(span, size)
    inside = np.flatnonzero((centres >= -0.5) & (centres <= given - 0.5))
    return (int(inside[0]), int(inside[-1]) + 1) if inside.size else (0, 0)


def _centres(span: Span, size: int) -> np.ndarray:
    return span[0] + (np.arange(size) + 0.5) * (span[1] - span[0]) / size - 0.5


def _taken(span: Span, given: int, size: int) -> np.ndarray:
    """Return the matrix that samples a span of an axis linearly, ``[size, given]``; 0 outside of it."""
    centres = _centres(span, size)
    weights = np.clip(1.0 - np.abs(np.arange(given)[None] - centres.clip(0, given - 1)[:, None]), 0.0, None)
    inside = (centres >= -0.5) & (centres <= given - 0.5)
    return np.asarray(np.multiply(weights, inside[:, None]))


def _spans(size: int) -> list[Span]:
    found = []
    for extent in _EXTENTS * size:
        room = size - extent
        found += [(room * place, room * place + extent) for place in _PLACES]
    return [span for span in dict.fromkeys(found) if min(span[1], size) - max(span[0], 0) >= _LEAST_COMMON * size]


def _coarse(one: np.ndarray, other: np.ndarray) -> list[np.ndarray]:
    """Return the places, top to right in shares of the picture, at which two coarse copies are most alike."""
    spans = [_spans(length) for length in one.shape]
    down, along = (
        np.stack([_taken(span, length, size) for span in each])
        for each, length, size in zip(spans, one.shape, other.shape, strict=True)
    )
    seen, across = down.sum(-1) > 0, along.sum(-1) > 0  # [spans, size]
    best: list[tuple[float, np.ndarray]] = []
    for at, rows in enumerate(down):
        made = (rows @ one)[None] @ np.swapaxes(along, 1, 2)  # [spans, rows, columns]
        weight = seen[at][None, :, None] * across[:, None, :]
        count = weight.sum((1, 2))
        moments = [np.sum(weight * each, axis=(1, 2)) / count for each in (made, other, made * made, other**2)]
        product = np.sum(weight * made * other, axis=(1, 2)) / count
        spread = (moments[2] - moments[0] ** 2) * (moments[3] - moments[1] ** 2)
        alike = (product - moments[0] * moments[1]) / np.sqrt(np.maximum(spread, 1e-30))
        place = int(np.argmax(alike))
        share = np.array([*spans[0][at], *spans[1][place]]) / np.repeat(one.shape, 2)
        best.append((float(alike[place]), share))
    best.sort(key=lambda each: -each[0])
    return [share for alike, share in best[:_STARTS] if alike >= _LIKE]


def _refined(one: np.ndarray, other: np.ndarray, start: np.ndarray) -> tuple[float, np.ndarray] | None:
    """Return what remains after the best of near places, and that place in pixels; None where it runs away."""
    box = start * np.repeat(one.shape, 2)
    slopes = np.gradient(one)
    ends = [(np.arange(size) + 0.5) / size for size in other.shape]
    left = np.inf
    for _ in range(_STEPS):
        rows, columns = (box[0], box[1]), (box[2], box[3])
        top, bottom = _valid(rows, one.shape[0], other.shape[0])
        first, last = _valid(columns, one.shape[1], other.shape[1])
        if min((bottom - top) / other.shape[0], (last - first) / other.shape[1]) < _LEAST_COMMON:
            return None
        down = _taken(rows, one.shape[0], other.shape[0])[top:bottom]
        along = _taken(columns, one.shape[1], other.shape[1])[first:last].T
        made, slope_down, slope_along = (down @ each @ along for each in (one, *slopes))
        high, wide = ends[0][top:bottom, None], ends[1][None, first:last]
        known = np.stack([slope_down * (1 - high), slope_down * high, slope_along * (1 - wide), slope_along * wide,
                          made, np.ones_like(made)]).reshape(6, -1)  # fmt: skip
        wanted = other[top:bottom, first:last].ravel()
        solved = np.linalg.lstsq(known @ known.T, known @ wanted, rcond=None)[0]
        spread = wanted.std()
        if abs(solved[4]) < 1e-9 or spread == 0.0:
            return None
        left = float(np.sqrt(np.mean((solved[4:] @ known[4:] - wanted) ** 2)) / spread)
        step = np.clip(solved[:4] / solved[4], -0.1 * max(one.shape), 0.1 * max(one.shape))
        box = box + step
        if np.abs(step).max() < _STILL:
            break
    return left, box
