"""Mistakes in integers and scales, which no rounding to nearest makes: told from the numbers alone.

Of a weight next to its original: rounded down, rounded before to fewer bits, scales in another order, signed bytes kept
as unsigned ones, nothing but zeros. Of a scale next to the right one: its reciprocal. Of the range of an input: which
preprocessing the calibration data had.
"""

import dataclasses

import numpy as np

_FEWEST = 32
"""Numbers of a weight from which on a direction of rounding is no chance: once in 2^32."""
_WITHIN, _SLACK = 0.98, 0.01
"""Share of numbers that have to bear a relation out (others are cut off at the ends), and steps by which tools that
compute in float32 round otherwise."""
_ONE_WAY = 0.1
"""Steps by which the mean of numbers rounded down or up may be off half a step: rounding to nearest is half a step
away, and of 32 numbers spread over a step the mean is known to 0.05."""
_LEVELS = ((4, 15), (3, 7), (2, 4))
"""Bits, and how many different numbers they hold at most."""
_MANY = 64
"""Numbers of a channel that take more than 16 values in 8 bits, unless they were rounded before."""
_LIKE = 0.03
"""By so much a scale may be another than the one that fits: a step is known to 1 / 127 at the largest number."""
_PREPARED = (
    (0.0, 255.0, "pixels from 0 to 255"),
    (0.0, 1.0, "numbers from 0 to 1"),
    (-1.0, 1.0, "numbers from -1 to 1"),
    (-128.0, 127.0, "pixels from -128 to 127"),
)
"""Ranges of pictures that programs make."""
_FILLED = 0.75
"""Share of a usual range that calibration data have to fill for it to be named."""


@dataclasses.dataclass(frozen=True, slots=True)
class StoredInteger:
    """A weight as a file keeps it, next to its original.

    Attributes:
        was: The original's numbers, float64.
        integers: The stored ones, of their own type.
        scale: One step, or one for each index of `axis`, float64, ``[n]``.
        zero: Likewise, the zero points, float64.
        axis: The axis of several scales.
    """

    was: np.ndarray
    integers: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    axis: int

    def shaped(self, numbers: np.ndarray) -> np.ndarray:
        """Return scales or zero points so that they meet the weight element by element."""
        shape = [1] * self.was.ndim
        if numbers.size > 1:
            shape[self.axis % self.was.ndim] = -1
        return numbers.reshape(shape)

    @property
    def centred(self) -> np.ndarray:
        """The integers less their zero points, float64."""
        return np.asarray(self.integers.astype(np.float64) - self.shaped(self.zero))

    @property
    def nearest(self) -> np.ndarray:
        """The integers that rounding the original to nearest makes, with scales that fit it."""
        ends = np.iinfo(self.integers.dtype)
        whole = np.rint(self.was / self.shaped(self.scale)) + self.shaped(self.zero)
        return np.asarray(np.clip(whole, ends.min, ends.max).astype(self.integers.dtype))


def wrong_integers(weight: StoredInteger) -> str:
    """Return what was done to a weight, as the rest of a sentence that begins with it; empty where nothing is known."""
    was = weight.was
    if was.shape != weight.integers.shape or was.size < 2 or not np.isfinite(was).all() or not was.any():
        return ""
    if not weight.centred.any():
        return "is 0 everywhere: it was dropped"
    if was.size < _FEWEST or was.ndim < 2:
        return ""
    return _as_other_bytes(weight) or _scales_moved(weight) or _one_way(weight) or _few_levels(weight)


def _as_other_bytes(weight: StoredInteger) -> str:
    """Return that bytes are read with another sign than they were written with."""
    dtype = weight.integers.dtype
    if dtype.itemsize != 1 or dtype.kind not in "iu":
        return ""
    other = np.dtype(np.int8 if dtype.kind == "u" else np.uint8)
    integers = weight.integers.view(other)
    zero = weight.zero.astype(dtype).view(other).astype(np.float64)
    read = dataclasses.replace(weight, integers=integers, zero=zero)
    if _rounded_share(weight) < _WITHIN <= _rounded_share(read):
        return f"holds {other} bytes kept as {dtype}: numbers of one sign are 256 steps off"
    return ""


def _rounded_share(weight: StoredInteger) -> float:
    """Return the share of a weight's numbers that are their originals, rounded to nearest."""
    off = np.abs(weight.centred - weight.was / weight.shaped(weight.scale))
    return float(np.mean(off <= 0.5 + _SLACK))


def _scales_moved(weight: StoredInteger) -> str:
    """Return that each channel has the scale of another one."""
    count = weight.scale.size
    if count < 4 or weight.was.shape[weight.axis % weight.was.ndim] != count:
        return ""
    was, now = (np.moveaxis(each, weight.axis, 0).reshape(count, -1) for each in (weight.was, weight.centred))
    energy = (now * now).sum(axis=1)
    if not energy.all():
        return ""
    fits = (was * now).sum(axis=1) / energy
    if np.all(np.abs(fits / weight.scale - 1.0) <= _LIKE) or np.any(fits <= 0.0):
        return ""
    for shift in range(1, count):
        if np.all(np.abs(fits / np.roll(weight.scale, -shift) - 1.0) <= _LIKE):
            by = shift if shift <= count // 2 else shift - count
            return f"has the scales of its channels moved by {by} along axis {weight.axis % weight.was.ndim}"
    if np.all(np.abs(np.sort(fits) / np.sort(weight.scale) - 1.0) <= _LIKE):
        return f"has the scales of its channels in another order along axis {weight.axis % weight.was.ndim}"
    return ""


def _one_way(weight: StoredInteger) -> str:
    """Return that all numbers are rounded in one direction, or towards 0."""
    steps = weight.was / weight.shaped(weight.scale)
    off = weight.centred - steps
    ends = np.iinfo(weight.integers.dtype)
    free = (weight.integers > ends.min) & (weight.integers < ends.max) & (np.abs(off) > _SLACK)
    if np.count_nonzero(free) < _FEWEST:
        return ""
    for words, moved in (("down", -off), ("up", off), ("towards 0", -off * np.sign(steps))):
        there = moved[free]
        inside = np.mean((there > -_SLACK) & (there < 1.0 + _SLACK))
        if inside >= _WITHIN and abs(float(there.mean()) - 0.5) <= _ONE_WAY:
            return f"is rounded {words} instead of to the nearest integer"
    return ""


def _few_levels(weight: StoredInteger) -> str:
    """Return that integers of 8 bits take no more values than those of fewer bits."""
    channels = weight.was.shape[weight.axis % weight.was.ndim] if weight.scale.size > 1 else 1
    rows = np.moveaxis(weight.integers, weight.axis if channels > 1 else 0, 0).reshape(channels, -1)
    if weight.integers.dtype.itemsize != 1 or rows.shape[1] < _MANY or _rounded_share(weight) >= _WITHIN:
        return ""
    most = max(np.unique(row).size for row in rows)
    bits = min((bits for bits, levels in _LEVELS if most <= levels + 1), default=0)
    of = " of a channel" if channels > 1 else ""
    return f"takes {most} different numbers{of}: it was rounded to {bits} bits before" if bits else ""


def wrong_scale(scale: np.ndarray, right: np.ndarray) -> str:
    """Return how a scale is made of the right one, as the rest of a sentence; empty where it is not known."""
    if scale.shape != right.shape or not (scale > 0).all() or not (right > 0).all():
        return ""
    if np.all(np.abs(scale * right - 1.0) <= _LIKE) and np.any(np.abs(right - 1.0) > _LIKE):
        return "is the reciprocal of one that fits: a quantizer that multiplies, where ONNX divides"
    return ""


def prepared(least: float, most: float) -> str:
    """Return which usual numbers of pictures fill a range; empty for none."""
    for low, high, words in _PREPARED:
        span, edge = high - low, (high - low) / 100
        if low - edge <= least and most <= high + edge and most - least >= _FILLED * span:
            return words
    return ""
