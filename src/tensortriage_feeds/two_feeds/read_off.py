"""Changes that two tensors show when they are solved for: mixed colours, filtered, shifted or resampled sounds.

Each is a small system of linear equations, or the place where two sounds agree best; numbers are told, whatever they
are, and named where they are usual.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from tensortriage_feeds.normalizations import ALL, numbers
from tensortriage_feeds.pictures import PictureAxes, picture_axes
from tensortriage_feeds.tokens import RATES
from tensortriage_feeds.transforms import Transform, of_input
from tensortriage_feeds.two_feeds.pieces import by_pieces

_LEAST_SAMPLES = 256
"""Samples of a signal at least."""
_LIKE = 0.03
"""The rest where numbers passed through 8 or 16 bits, or between samples, at most, as a share of the deviation."""
_LEAST_BINS, _MOST_BINS, _FINE = 12, 512, 8
"""Bins of a spectrogram, and parts of one by which they are told apart."""
_LIKE_BINS = 0.2
"""The rest that bins at other places leave at most, as a share of the deviation."""
_TAPS = 4
"""Samples before each one of which a filter makes it."""
_LUMA = {"BT.601": (0.299, 0.587, 0.114), "BT.709": (0.2126, 0.7152, 0.0722)}
_CURE = "hand {x} over as the reference has it"

Found = tuple[Transform, float]


def read_off(name: str, mine: np.ndarray, theirs: np.ndarray) -> Iterator[Found]:
    """Yield changes of one input that are solved for, and what each leaves as a share of the deviation.

    Args:
        name: The input.
        mine: The right tensor.
        theirs: The other one, of the same shape.
    """
    yield from _swapped(name, mine, theirs)
    if mine.dtype.kind not in "fiu" or theirs.dtype.kind not in "fiu" or not np.ptp(mine) or not np.ptp(theirs):
        return
    one, other = mine.astype(np.float64), theirs.astype(np.float64)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return
    axes = picture_axes(mine.shape)
    yield from by_pieces(name, one, other, axes)
    if axes is not None and mine.shape[axes.channel] == len(_LUMA["BT.601"]):
        yield from _mixed(name, one, other, axes)
    elif mine.ndim > 2 and (axes is None or mine.shape[axes.channel] == 1):
        yield from _warped(name, one, other)
    elif axes is None and mine.shape[-1] >= _LEAST_SAMPLES:
        yield from _shifted(name, one, other)
        yield from _filtered(name, one, other)
        yield from _resampled(name, one, other)


def _mixed(name: str, one: np.ndarray, other: np.ndarray, axes: PictureAxes) -> Iterator[Found]:
    """Yield the matrix by which colours were mixed: luma in all of them, or another space of colours."""
    pixels, made = (np.moveaxis(each, axes.channel, 0).reshape(3, -1) for each in (one, other))
    known = np.concatenate([pixels, np.ones((1, pixels.shape[1]))])
    ends = made.min(1, keepdims=True), made.max(1, keepdims=True)
    inside = ((made > ends[0]) & (made < ends[1])).all(0)  # what is cut off at an end tells nothing
    seen, wanted = (known[:, inside], made[:, inside]) if 2 * inside.sum() > inside.size else (known, made)
    solved = np.linalg.lstsq(seen @ seen.T, seen @ wanted.T, rcond=None)[0]  # [4, 3]
    left = float(np.sqrt(np.mean(((solved.T @ known).clip(*ends) - made) ** 2)) / made.std())
    if left > _LIKE:
        return
    mixing, offset = solved[:3].T, solved[3]
    gray = np.linalg.matrix_rank(mixing, tol=_LIKE * np.abs(mixing).max()) == 1
    if (np.count_nonzero(np.abs(mixing) > _LIKE * np.abs(mixing).max(), axis=1) <= 1).all() and not _same_source(
        mixing
    ):
        return  # a scale, or another place, of each channel
    matrix = [numbers(row) for row in mixing]
    shares = mixing[0] / mixing[0].sum() if mixing[0].sum() else mixing[0]
    if gray:
        told = f"{standard}'s luma" if (standard := _weights(mixing)) else f"{numbers(shares)} of each"
        words = f"has one mixture of its channels in all of them, {told}: a gray picture"
        cure = "read the picture with its colours"
    else:
        words = f"has its channels mixed, each a row of {matrix}: another space of colours (YUV, YCrCb, ...)"
        cure = "convert the picture to the colours of training before {x} is filled"
    yield of_input(name, "gray" if gray else "colours-mixed", words, lambda _: other, cure, matrix=matrix,
                   offset=numbers(offset)), left  # fmt: skip


def _same_source(mixing: np.ndarray) -> bool:
    """Return whether all channels are made of one of them."""
    return np.unique(np.abs(mixing).argmax(axis=1)).size == 1


def _warped(name: str, one: np.ndarray, other: np.ndarray) -> Iterator[Found]:
    """Yield the places along an axis, none of them far, at which indices of another one lie, as of other bins."""
    for axis in range(1, one.ndim):
        right, made = (np.moveaxis(each, axis, 0).reshape(one.shape[axis], -1) for each in (one, other))
        size = len(right)
        if not _LEAST_BINS <= size <= _MOST_BINS or right.shape[1] < size:
            continue
        fine = np.arange(0, size - 1 + 1 / _FINE, 1 / _FINE)
        between = np.stack([np.interp(fine, np.arange(size), column) for column in right.T], 1)
        known, wanted = (each - each.mean(1, keepdims=True) for each in (between, made))
        lengths = np.linalg.norm(known, axis=1)[None] * np.linalg.norm(wanted, axis=1)[:, None]
        alike = (wanted @ known.T) / np.maximum(lengths, 1e-30)
        places = np.maximum.accumulate(fine[alike.argmax(1)])
        far = np.abs(places - np.arange(size)).max()
        best = np.stack([np.interp(places, np.arange(size), column) for column in right.T], 1)
        lines = [np.polyfit(x, y, 1) if np.ptp(x) else (0.0, y.mean()) for x, y in zip(best, made, strict=True)]
        left = _apart(np.stack([by * x + plus for (by, plus), x in zip(lines, best, strict=True)]), made)
        if far < 0.5 or left > _LIKE_BINS or np.count_nonzero(np.diff(places) <= 0) > size // 4:
            continue
        few = [float(f"{places[at]:.3g}") for at in np.linspace(0, size - 1, 5).astype(int)]
        words = (
            f"has along axis {axis} what lies at other places of the reference's, {few} in place of 0 to {size - 1}: "
            "bins of another scale of frequencies (HTK's mel for Slaney's), or between other ends (fmin, fmax, rate)"
        )
        cure = "compute {x} with the filters of training (mel scale, norm, fmin, fmax, n_fft)"
        yield of_input(name, "stretch", words, lambda _: other, cure, axis=axis, places=numbers(places)), left


def _weights(mixing: np.ndarray) -> str:
    """Return the standard whose weights of red, green and blue pictures have that are normalized in a usual way."""
    for by in ALL:
        _, deviation = by.of_channels(3)
        plain = mixing * deviation[:, None] / deviation[None]
        for name, luma in _LUMA.items():
            if np.abs(plain - np.array(luma)).max() < _LIKE:
                return name
    return ""


def _swapped(name: str, mine: np.ndarray, theirs: np.ndarray) -> Iterator[Found]:
    """Yield numbers, or the 16-bit samples that numbers from -1 to 1 were, whose bytes are in the other order."""
    ways = {f"bytes of {mine.dtype}": mine.byteswap()}
    if mine.dtype.kind == "f" and np.abs(mine).max(initial=0) <= 1:
        samples = np.rint(mine.astype(np.float64) * 32768).clip(-32768, 32767).astype(np.int16)
        ways["two bytes of 16-bit samples"] = (samples.byteswap() / 32768).astype(mine.dtype)
    for words, made in ways.items():
        if mine.dtype == theirs.dtype and mine.dtype.itemsize > 1 and np.allclose(made, theirs, 1e-4, equal_nan=True):
            yield of_input(name, "other-bytes", f"has the {words} in the other order (big-endian)", lambda _: theirs,
                           "read {x} as little-endian: np.frombuffer(..., '<i2')", dtype="swapped"), 0.0  # fmt: skip


def _shifted(name: str, one: np.ndarray, other: np.ndarray) -> Iterator[Found]:
    """Yield by how many samples a signal begins later or earlier, where more than half of it is there."""
    length = one.shape[-1]
    fourier = np.fft.rfft(one, 2 * length) * np.conj(np.fft.rfft(other, 2 * length))
    alike = np.fft.irfft(fourier, 2 * length).reshape(-1, 2 * length).sum(0)
    step = int(np.argmax(alike))
    step = step - 2 * length if step > length else step
    if step == 0 or abs(step) > length // 2:
        return
    right, made = one[..., max(step, 0) : length + min(step, 0)], other[..., max(-step, 0) : length - max(step, 0)]
    gain = float(f"{np.vdot(right, made) / (np.vdot(right, right) or 1.0):.4g}")
    if np.ptp(made) and (left := _apart(gain * right, made)) <= 1e-3:
        louder = f" and is multiplied by {gain:g}" if abs(gain - 1) > 1e-3 else ""
        words = f"begins {abs(step)} samples {'later' if step > 0 else 'earlier'} along its last axis{louder}"
        yield of_input(name, "shifted", words, lambda _: other, _CURE, shift=step, scale=gain), left


def _apart(right: np.ndarray, made: np.ndarray) -> float:
    return float(np.sqrt(np.mean((right - made) ** 2)) / (made.std() or 1.0))


def _filtered(name: str, one: np.ndarray, other: np.ndarray) -> Iterator[Found]:
    """Yield the filter of a few samples that makes a signal of another: pre-emphasis, differences, averages."""
    known = np.stack([one[..., _TAPS - tap : one.shape[-1] - tap].ravel() for tap in range(_TAPS + 1)])
    made = other[..., _TAPS:].ravel()
    if not np.ptp(made):
        return
    taps = np.linalg.lstsq(known.T, made, rcond=None)[0]
    taps[np.abs(taps) < 1e-3 * np.abs(taps).max()] = 0.0
    if np.count_nonzero(taps) < 2 or (left := _apart(taps @ known, made)) > 1e-3:
        return
    told = [float(f"{tap:.5g}") for tap in taps[: int(np.flatnonzero(taps)[-1]) + 1]]
    emphasis = len(told) == 2 and abs(told[0] - 1) < 1e-2 and -1 <= told[1] < 0
    words = f"is filtered, each sample and those before it by {told}{' (pre-emphasis)' if emphasis else ''}"
    yield of_input(name, "filter", words, lambda _: other, "leave the filter out, or train with it", taps=told), left


def _resampled(name: str, one: np.ndarray, other: np.ndarray) -> Iterator[Found]:
    """Yield the sampling rates that were taken for each other: the same sound, faster or slower."""
    length = one.shape[-1]
    flat, sound = one.reshape(-1, length)[0], other.reshape(-1, length)[0]
    ratios = {(a // _common(a, b), b // _common(a, b)): (a, b) for a, b in itertools.permutations(RATES, 2)}
    best: tuple[float, tuple[int, int]] = (0.0, (1, 1))
    for (up, down), rates in ratios.items():
        places = np.arange(length) * (up / down)
        places = places[places <= length - 1]
        if places.size < length // 4:
            continue
        made, heard = np.interp(places, np.arange(length), flat), sound[: places.size]
        if np.ptp(made) and np.ptp(heard):
            best = max(best, (float(np.corrcoef(made, heard)[0, 1]), rates))
    alike, (given, taken) = best
    if alike < _SAME_SOUND:
        return
    share = f"{given / _common(given, taken):g}/{taken / _common(given, taken):g}"
    twice = 2 * given == taken and np.array_equal(sound[0 : length // 2 * 2 : 2], sound[1 : length // 2 * 2 : 2])
    why = "two channels one sample after the other, read as one, or" if twice else "as"
    words = (f"is the same sound at {share} of its speed, {why} where samples at {taken} per second are taken for ones "
             f"at {given} (or another pair of rates of that ratio)")  # fmt: skip
    yield of_input(name, "resampling", words, lambda _: other, "resample {x} to the rate of training, one channel",
                   ratio=[given, taken]), float(np.sqrt(max(1 - alike**2, 0.0)))  # fmt: skip


_SAME_SOUND = 0.96
"""Correlation from which on two sounds are one: a quarter of the deviation may lie beyond the lower rate."""


def _common(one: int, other: int) -> int:
    return int(np.gcd(one, other))
