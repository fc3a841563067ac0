"""A function of each number by itself, read off two tensors: a few lines, each over a range of numbers.

A cast that wraps, a sign that is lost, a division of whole numbers, a brightness that is cut off: whatever made it, the
same number always became the same other one, and between few ends the two lie on lines.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from tensortriage_feeds.normalizations import byte_ranges, numbers
from tensortriage_feeds.pictures import PictureAxes
from tensortriage_feeds.transforms import Transform, of_input

_MOST, _FREE = 4, 4
"""Pieces of a function, and numbers beyond the two that a line goes through in any case."""
_LOOKED_AT = 8192
"""Numbers of a large tensor in which pieces are looked for first."""
_TIGHT = 4e-6
"""Largest distance from a line as a share of all numbers' range: fp32 rounds to 6e-8 of the largest, thrice."""


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    """Numbers from `low` to `high`, so many different ones, became ``scale * number + offset``."""

    low: float
    high: float
    scale: float
    offset: float
    count: int


def by_pieces(
    name: str, one: np.ndarray, other: np.ndarray, axes: PictureAxes | None
) -> Iterator[tuple[Transform, float]]:
    """Yield that each number became another by two to four lines, of all numbers or in each channel.

    Args:
        name: The input.
        one: The right tensor, float64, finite.
        other: The other one, likewise, of the same shape.
        axes: Their axes where they hold pictures.
    """
    channels = [one.reshape(1, -1) if axes is None else axes.by_channel(one),
                other.reshape(1, -1) if axes is None else axes.by_channel(other)]  # fmt: skip
    found: list[list[Piece]] = []
    for few in (max(one.size // len(channels[0]) // _LOOKED_AT, 1), 1):
        found = []
        for right, made in zip(*channels, strict=True):
            lines = pieces(right[::few], made[::few])
            if not lines:
                return
            found.append(lines)
    if all(len(lines) == 1 for lines in found) or (axes is not None and all(map(_is_one_colour, found))):
        return
    first = max(found, key=len)
    by = next(iter(byte_ranges(channels[0])), None) if axes is not None else None
    unit, moved = 1.0, 0.0
    if by is not None:
        unit, moved = (255.0 * float(each[found.index(first)]) for each in reversed(by.of_channels(len(found))))
    told, kind, cure = _in_words(first, unit, moved)
    where = " (in bytes, before it is normalized)" if (unit, moved) != (1.0, 0.0) else ""
    yield of_input(name, kind, f"{told}{where}", lambda _: other, cure,
                   pieces=[numbers(np.array(dataclasses.astuple(piece))) for piece in first]), 0.0  # fmt: skip


def _is_one_colour(lines: list[Piece]) -> bool:
    """Return whether one number alone became another: that of bands, or of a place."""
    return all(line.count <= 2 or max(abs(line.scale - 1), abs(line.offset)) < 10 * _TIGHT for line in lines)


def pieces(right: np.ndarray, made: np.ndarray) -> list[Piece]:
    """Return the lines by which numbers became others; empty where they are no function, or one of many pieces."""
    x, group, count = np.unique(right, return_inverse=True, return_counts=True)
    if x.size < 2:
        return []
    y = np.bincount(group.ravel(), made) / count
    tight = _TIGHT * max(np.ptp(made), np.abs(made).max())
    if np.abs(y[group.ravel()] - made).max() > tight:
        return []
    found: list[Piece] = []
    start = 0
    while start < x.size:
        if len(found) == _MOST:
            return []
        end, scale, offset = _line(x[start:], y[start:], tight)
        found.append(Piece(float(x[start]), float(x[start + end - 1]), scale, offset, end))
        start += end
    return found if x.size >= 2 * len(found) + _FREE else []


def _line(x: np.ndarray, y: np.ndarray, tight: float) -> tuple[int, float, float]:
    """Return how many of the first numbers lie on one line, its scale and its offset."""
    count, scale, offset = 1, 0.0, float(y[0])
    while count < x.size:
        known = slice(0, max(count, 2))
        span = x[known] - x[0]
        scale = float(np.sum(span * (y[known] - y[0])) / np.sum(span * span))
        offset = float(np.mean(y[known] - scale * x[known]))
        reach = 1.0 + (x - x[0]) / span[-1]  # a line through near numbers is less sure of far ones
        off = np.flatnonzero(np.abs(scale * x + offset - y) > tight * reach)
        longer = int(off[0]) if off.size else x.size
        if longer <= count:
            break
        count = longer
    return (count, 0.0, float(y[0])) if count == 1 else (count, scale, offset)


def _in_words(lines: list[Piece], unit: float, moved: float) -> tuple[str, str, str]:
    """Return what became of numbers, the kind of it and its cure; of pixels in bytes."""

    def plain(number: float) -> str:
        return f"{number * unit + moved:.5g}"

    slopes = [line.scale for line in lines]
    if not any(slopes):
        said = ", ".join(f"{plain(line.offset)} from {plain(line.low)} to {plain(line.high)}" for line in lines)
        return f"has {len(lines)} levels left ({said}): whole numbers were divided or cut", "dtype", (
            "convert {x} to float32 before anything is computed with it")  # fmt: skip
    if np.ptp(slopes) <= 1e-3 * np.abs(slopes).max() and lines[0].scale:
        jumps = [f"from {plain(line.low)} on by {abs(line.offset - lines[0].offset) * unit:.5g}" for line in lines[1:]]
        way = "less" if lines[-1].offset < lines[0].offset else "more"
        signed = " (bytes read as signed ones, or numbers that wrap)"
        return f"has less or more than its numbers: {', '.join(jumps)} {way}{signed}", "dtype", (
            "convert bytes to unsigned numbers, and to float32, before anything is computed with them")  # fmt: skip
    said = "; ".join(f"from {plain(line.low)} to {plain(line.high)} {_of_line(line, unit, moved)}" for line in lines)
    return f"is another function of its numbers: {said}", "function", "hand {x} over as the reference has it"


def _of_line(line: Piece, unit: float, moved: float) -> str:
    if not line.scale:
        return f"{line.offset * unit + moved:.5g}"
    return f"times {line.scale:.5g} and {line.offset * unit + moved * (1 - line.scale):+.5g}"
