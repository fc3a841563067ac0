"""Changes of each number by itself that two tensors show: powers, ends, levels, a scale of each sample, parts."""

from collections.abc import Iterator

import numpy as np

from tensortriage_feeds.arrays.fits import EXACT, unexplained
from tensortriage_feeds.arrays.functions import OWN, Function, cut_off
from tensortriage_feeds.normalizations import PLAIN, pixel_ranges
from tensortriage_feeds.pictures import PictureAxes, picture_axes
from tensortriage_feeds.transforms import Transform, of_input

CLOSE = 2e-3
"""The rest that numbers in three digits leave, as a share of the deviation: a power, a usual scale."""
_LEAST = 16
"""Numbers from which a power is fitted."""
_LEAST_CUT = 4
"""Numbers that an end has to cut off, and numbers of a sample, at least."""
_COARSER = 1.5
"""Steps of 8 bits from which on there are fewer; rounding to those is told otherwise."""

Found = tuple[Transform, float]


def solved(name: str, mine: np.ndarray, theirs: np.ndarray) -> Iterator[Found]:
    """Yield changes of numbers whose parameters are solved for, and what each leaves as a share of the deviation.

    Args:
        name: The input.
        mine: The right tensor.
        theirs: The other one, of the same shape.
    """
    if mine.dtype.kind != "f" or theirs.dtype.kind not in "fiu" or not np.ptp(mine) or not np.ptp(theirs):
        return
    one, other = mine.astype(np.float64), theirs.astype(np.float64)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return
    yield from _ends(name, one, other)
    axes = picture_axes(mine.shape)
    yield from _powers(name, one, other, axes)
    yield from _of_samples(name, one, other, axes)
    if axes is not None:
        yield from _levels(name, one, other, axes)


def _ends(name: str, one: np.ndarray, other: np.ndarray) -> Iterator[Found]:
    low, high = float(other.min()), float(other.max())
    below, above = (int(np.count_nonzero(each)) for each in (one < low, one > high))
    low, high = (low if below >= _LEAST_CUT else -np.inf), (high if above >= _LEAST_CUT else np.inf)
    if (below >= _LEAST_CUT or above >= _LEAST_CUT) and (
        left := unexplained(one.clip(low, high), other, None)
    ) <= CLOSE:
        yield cut_off(name, low, high), left if left > EXACT else 0.0


def _powers(name: str, one: np.ndarray, other: np.ndarray, axes: PictureAxes | None) -> Iterator[Found]:
    """Yield the power to which pixels, or numbers above 0, were raised, with a factor where they are no pixels."""
    over = () if axes is None else tuple(axis for axis in range(one.ndim) if axis != axes.channel)
    ranges = [] if axes is None else list(pixel_ranges(one.min(axis=over), one.max(axis=over)))
    for by in ranges or [PLAIN]:
        mean, deviation = np.zeros(1), np.ones(1)
        if axes is not None and ranges:
            mean, deviation = (axes.per_channel(each, one.ndim) for each in by.of_channels(one.shape[axes.channel]))
        right, made = (each * deviation + mean for each in (one, other))
        inside = (right > 0.02 * right.max()) & (right < 0.98 * right.max()) & (made > 0.0)
        if right.min() < -CLOSE or np.count_nonzero(inside) < max(_LEAST, inside.size // 8):
            continue
        logs = np.log(right[inside]), np.log(made[inside])
        power, factor = np.polyfit(*logs, 1)
        if ranges:
            power, factor = float(np.sum(logs[0] * logs[1]) / np.sum(logs[0] ** 2)), 0.0
        power = float(f"{power:.3g}")
        back = (np.exp(factor) * np.power(right.clip(0.0), power) - mean) / deviation if power > 0.0 else one
        if abs(power - 1.0) < 0.02 or (left := unexplained(back, other, None)) > CLOSE * 10:
            continue
        before = f" before it is normalized to {by.words}" if by is not PLAIN and ranges else ""
        times = f", times {np.exp(factor):.4g}" if abs(factor) > CLOSE else ""
        yield of_input(name, "gamma", f"is raised to the power {power:g}{times}{before} (a gamma)", lambda _: other,
                       f"undo it: {{x}} ** {1 / power:.4g}, in numbers from 0 to 1", gamma=power), left  # fmt: skip
        return


def _of_samples(name: str, one: np.ndarray, other: np.ndarray, axes: PictureAxes | None) -> Iterator[Found]:
    """Yield that each sample has a scale and an offset of its own, and the rule that made them, where it is known."""
    if one.ndim < 2 or len(one) < 2 or one[0].size < _LEAST_CUT:
        return
    of_channel = () if axes is None or axes.channel == 0 else (axes.channel,)
    for kept in ((0,), (0, *of_channel)) if of_channel else ((0,),):
        over = tuple(axis for axis in range(one.ndim) if axis not in kept)
        if np.prod([one.shape[axis] for axis in over]) < _LEAST_CUT:
            continue
        mean = [each.mean(axis=over, keepdims=True) for each in (one, other)]
        spread = np.mean((one - mean[0]) ** 2, axis=over, keepdims=True)
        scale = np.mean((one - mean[0]) * (other - mean[1]), axis=over, keepdims=True) / np.where(spread, spread, 1.0)
        left = unexplained((one - mean[0]) * scale + mean[1], other, None)
        if left > EXACT * 10:
            continue
        own = next((words for words, function in OWN.items() if _is_own(other, function)), "")
        words = f"is {own}, each index of axis 0" if own else (
            f"has a scale and an offset of its own in each index of axis 0{' and channel' if len(kept) > 1 else ''} "
            f"(scales {scale.min():.4g} to {scale.max():.4g})"
        )  # fmt: skip
        cure = f"leave out the step that has each sample {own}" if own else "normalize every sample by the same numbers"
        yield of_input(name, "scale", words, lambda _: other, cure, each=0), 0.0
        return


def _is_own(array: np.ndarray, function: Function) -> bool:
    """Return whether each sample is what a rule makes of it: twice is once."""
    return bool(np.abs(np.stack([function(sample) for sample in array]) - array).max() <= 1e-4 * np.abs(array).max())


def _levels(name: str, one: np.ndarray, other: np.ndarray, axes: PictureAxes) -> Iterator[Found]:
    """Yield that the channels of a picture have few levels, evenly apart, each next to the right number."""
    over = tuple(axis for axis in range(one.ndim) if axis != axes.channel)
    by = next(pixel_ranges(one.min(axis=over), one.max(axis=over)), None)
    if by is None:
        return
    found = []
    _, deviations = by.of_channels(one.shape[axes.channel])
    channels = (np.moveaxis(each, axes.channel, 0) for each in (one, other))
    for deviation, right, made in zip(deviations, *channels, strict=True):
        levels, had = np.unique(made.astype(np.float32)), np.unique(right.astype(np.float32)).size
        steps = np.diff(levels.astype(np.float64))
        steps = steps[steps > 1e-4 * np.ptp(levels)]
        if not 1 <= steps.size < had / 2:
            return
        step = float(np.median(steps[steps < 1.5 * steps.min()]))
        if step * deviation < _COARSER / 255:
            return
        if np.abs(steps / step - np.rint(steps / step)).max() > 0.1 or np.abs(made - right).max() > 1.1 * step:
            return
        found.append(round(np.ptp(levels) / step) + 1)
    bits = [int(np.ceil(np.log2(count))) for count in found]
    words = f"has {', '.join(map(str, found))} levels in its channels: {', '.join(map(str, bits))} bits" + (
        " (RGB565)" if bits == [5, 6, 5] else ""
    )
    yield of_input(name, "dtype", words, lambda _: other, "read the picture with 8 bits a channel", bits=bits), 0.0


def part_unlike(mine: np.ndarray, theirs: np.ndarray) -> tuple[int, int, list[int]]:
    """Return the last axis of which less than half differs, its size, and the indices that do; none where none is.

    Of pictures that of channels alone: rows and columns are bands.
    """
    picture = picture_axes(mine.shape)
    for axis in reversed(range(mine.ndim)) if picture is None else (picture.channel,):
        over = tuple(each for each in range(mine.ndim) if each != axis)
        unlike = np.flatnonzero((mine != theirs).any(axis=over))
        if 0 < unlike.size <= mine.shape[axis] // 2:
            return axis, mine.shape[axis], unlike.tolist()
    return 0, 0, []
