"""Mistakes of programs with the numbers of an input: scales and offsets, ranges of the data, rounding, types."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from tensortriage_feeds.normalizations import (
    PLAIN,
    Normalization,
    Renormalized,
    byte_ranges,
    numbers,
    pixel_ranges,
    renormalizations,
)
from tensortriage_feeds.pictures import PictureAxes
from tensortriage_feeds.transforms import Transform, of_input

FITTED = "fitted"
"""Words of a scale and an offset that are none of the usual ones."""


_MOST_LISTED = 12
"""Numbers that are told one by one."""


def scaled(name: str, change: Renormalized, axes: PictureAxes | None, rank: int) -> Transform:
    """Return the transform of numbers by a scale and an offset, of each channel or of all."""
    scale, offset = numbers(change.scale), numbers(change.offset)
    mean, deviation = numbers(-change.offset / change.scale), numbers(1 / change.scale)
    shape = "" if axes is None or len(scale) == len(offset) == 1 else ", by channel"
    says = [f"is multiplied by {_listed(scale)}"] if any(each != 1.0 for each in scale) else []
    if any(offset):
        says.append(f"{'and ' if says else 'is '}moved by {_listed(offset)}")
    if not says:
        says.append(f"is multiplied by {change.scale[0]:.8g}")
    why = change.words if change.words != FITTED else f"mean {_listed(mean)} and deviation {_listed(deviation)}, fitted"
    words = f"{' '.join(says)}{shape} ({why})"
    few = np.flatnonzero((change.scale != 1.0) | (change.offset != 0.0))
    if axes is not None and 0 < 2 * few.size <= len(change.scale) and change.words == FITTED:
        each = [f"index {at} of axis {axes.channel} multiplied by {change.scale[at]:.5g}" + (
            f" and moved by {change.offset[at]:.5g}" if change.offset[at] else "") for at in few]  # fmt: skip
        words = f"has {', '.join(each)}, all others as they are"
    moved = f"({{x}} - {_numpy(offset, axes, rank)})" if any(offset) else "{x}"
    over = _over(scale[0]) if len(scale) == 1 else 0
    divided = f" * {over}" if over else f" / {_numpy(scale, axes, rank)}" if any(each != 1.0 for each in scale) else ""
    cure = f"{{x}} = {moved}{divided}"
    if axes is not None and max(len(scale), len(offset)) > _MOST_LISTED:
        cure = f"give each index of axis {axes.channel} of {{x}} the mean and the deviation of training"

    def apply(array: np.ndarray) -> np.ndarray:
        by, plus = change.scale[:1], change.offset[:1]
        if axes is not None:
            by, plus = axes.per_channel(change.scale, rank), axes.per_channel(change.offset, rank)
        return np.asarray(np.add(np.multiply(array, by, dtype=np.float64), plus))

    return of_input(name, change.kind, words, apply, cure, scale=scale, offset=offset, mean=mean, deviation=deviation)


def _listed(found: list[float]) -> str:
    if len(found) > _MOST_LISTED:
        return f"[{found[0]:g}, {found[1]:g}, ..., {found[-1]:g}]"
    if len(found) > 1:
        return str(found)
    return f"1/{over}" if (over := _over(found[0])) else f"{found[0]:g}"


def _over(number: float) -> int:
    """Return the whole number from 3 on that a number is one part of; 0 where it is none."""
    inverse = 1 / number if 0.0 < number < 0.4 else 0.0
    return round(inverse) if inverse and abs(inverse - round(inverse)) < 1e-4 * inverse else 0


def _numpy(found: list[float], axes: PictureAxes | None, rank: int) -> str:
    if len(found) == 1 or axes is None:
        return f"{found[0]:g}" if found[0] >= 0 else f"({found[0]:g})"
    shape = [1] * rank
    shape[axes.channel] = -1
    return f"np.reshape({found}, {shape}).astype({{x}}.dtype)"


def scales(name: str, array: np.ndarray, axes: PictureAxes | None) -> Iterator[Transform]:
    """Yield the usual scales, means and deviations of pictures and sounds, put on an input or left out of it."""
    wide = array.astype(np.float64)
    if not np.isfinite(wide).all():
        return
    over = tuple(axis for axis in range(array.ndim) if axes is None or axis != axes.channel)
    least, most = np.atleast_1d(wide.min(axis=over)), np.atleast_1d(wide.max(axis=over))
    seen: set[bytes] = set()
    usual = itertools.chain(renormalizations(least, most), _audio(len(least)), _logarithms() if len(least) == 1 else ())
    for change in usual:
        key = np.round(np.concatenate([change.scale, change.offset]), 9).tobytes()
        if key not in seen and not (np.allclose(change.scale, 1.0) and np.allclose(change.offset, 0.0)):
            seen.add(key)
            yield scaled(name, change, axes, array.ndim)
    yield from of_the_data(name, wide)
    if axes is not None:
        yield from _gammas(name, least, most, axes, array.ndim)


def _gammas(name: str, least: np.ndarray, most: np.ndarray, axes: PictureAxes, rank: int) -> Iterator[Transform]:
    """Yield linear light for sRGB, and the other way round, behind which a normalization follows."""
    for by in pixel_ranges(least, most):
        if by is PLAIN:
            continue
        mean, deviation = by.of_channels(len(least))
        moved, divided = axes.per_channel(mean, rank), axes.per_channel(deviation, rank)

        def change(x: np.ndarray, power: float, moved: np.ndarray = moved, divided: np.ndarray = divided) -> np.ndarray:
            return np.asarray((_bent(x * divided + moved, 1.0, power) - moved) / divided)

        for gamma in (1 / 2.2, 2.2):
            yield of_input(name, "gamma", f"has a gamma of {gamma:.3g} (linear light for sRGB, or the other way round) "
                           f"before it is normalized to {by.words}", functools.partial(change, power=gamma),
                           "decode the picture as in training", gamma=gamma)  # fmt: skip


_LOGARITHMS = {
    10 / math.log(10): "decibels for a natural logarithm",
    20 / math.log(10): "decibels of magnitudes for a natural logarithm",
    1 / math.log(10): "log10 for a natural logarithm",
    1 / math.log(2): "log2 for a natural logarithm",
    math.log(10) / 10: "a natural logarithm for decibels",
    math.log(10): "a natural logarithm for log10",
}


def _logarithms() -> Iterator[Renormalized]:
    for factor, words in _LOGARITHMS.items():
        yield Renormalized("scale", words, np.full(1, factor), np.zeros(1))


def _audio(channels: int) -> Iterator[Renormalized]:
    for factor, words in ((32768.0, "16-bit samples for numbers from -1 to 1"), (1 / 32768, "divided by 32768")):
        yield Renormalized("scale", words, np.full(channels, factor), np.zeros(channels))
    for factor in (-1.0, 2.0, 0.5, 10.0, 0.1, 100.0, 0.01, 1000.0, 0.001):
        yield Renormalized("scale", "another unit", np.full(channels, factor), np.zeros(channels))


def of_the_data(name: str, wide: np.ndarray) -> Iterator[Transform]:
    """Yield scales that a program takes from the data themselves."""
    peak, spread, span = np.abs(wide).max(), wide.std(), np.ptp(wide)
    ways: list[tuple[str, float, float]] = []
    if span > 0.0:
        ways.append(("standardized by its own mean and deviation", wide.mean(), spread))
        ways.append(("stretched from its least to its largest number to 0 to 1", wide.min(), span))
        ways.append(("divided by its largest magnitude", 0.0, peak))
        ways.append(("centred on its own mean", wide.mean(), 1.0))
    for words, mean, deviation in ways:

        def apply(array: np.ndarray, mean: float = mean, deviation: float = deviation) -> np.ndarray:
            return (array - mean) / deviation

        if (mean, deviation) != (0.0, 1.0):
            yield of_input(name, "scale", f"is {words}", apply, f"leave out the step that has it {words}",
                           mean=[float(f"{mean:.5g}")], deviation=[float(f"{deviation:.5g}")])  # fmt: skip
    if wide.min() >= 0.0 and peak > 0.0:
        top = 255.0 if peak > 1.5 else 1.0
        for gamma in (1 / 2.2, 2.2):
            yield of_input(name, "gamma", f"has a gamma of {gamma:.3g} (linear light for sRGB, or the other way round)",
                           functools.partial(_bent, top=top, gamma=gamma),
                           f"{{x}} = {top:g} * ({{x}} / {top:g}) ** {1 / gamma:.3g}", gamma=gamma)  # fmt: skip


def _bent(array: np.ndarray, top: float, gamma: float) -> np.ndarray:
    return np.asarray(np.multiply(np.power(np.maximum(array, 0.0) / top, gamma), top))


def rounded(name: str, array: np.ndarray, axes: PictureAxes | None = None) -> Iterator[Transform]:
    """Yield numbers that passed through a type that does not hold them, pixels also before they are normalized."""
    ways: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
        "uint8": ("was cut to whole numbers of 8 bits, which wrap", lambda x: _wrapped(x, np.uint8)),
        "uint8-clipped": (
            "was rounded to whole numbers from 0 to 255",
            lambda x: np.clip(np.rint(x.astype(np.float64)), 0, 255),
        ),
        "int8": ("was read as signed bytes: from 128 on numbers are negative", lambda x: _wrapped(x, np.int8)),
        "integers": ("was cut to whole numbers", np.trunc),
        "255ths": ("was cut to 255ths, as bytes hold numbers from 0 to 1", lambda x: _wrapped(x * 255, np.uint8) / 255),
        "255ths-rounded": ("was rounded to 255ths", lambda x: np.clip(np.rint(x * 255.0), 0, 255) / 255),
        "fp16": ("was rounded to fp16", _halved),
    }
    if array.dtype.kind in "iu":
        del ways["integers"], ways["255ths"]
        ways["divided"] = "was divided by 255 in whole numbers", lambda x: x.astype(np.int64) // 255
    of_pixels = [] if axes is None or array.dtype.kind != "f" else byte_ranges(axes.by_channel(array))
    for by, (word, change) in itertools.product(of_pixels[:_MOST_RANGES], _OF_BYTES.items()):
        ways[f"{word}, {by.words}"] = (
            f"{word} before they were normalized to {by.words}",
            functools.partial(_in_bytes, change=change, by=by, axes=axes),
        )
    if array.dtype.itemsize == 1:
        words = "has 128 added to its bytes, which wrap: signed bytes taken for unsigned ones, or the other way round"
        ways["sign"] = (words, lambda x: x ^ np.array(-128).astype(x.dtype))
    for word, (words, change) in ways.items():
        left, cure = np.asarray(change(array)), f"convert to {array.dtype} before anything else"
        if np.ptp(left) == 0 < np.ptp(array):
            words += f", which leaves {left.flat[0]:g} everywhere"
            cure += f", or stretch its numbers, from {array.min():g} to {array.max():g}, to those of the type"
        yield of_input(name, "dtype", words, change, cure, through=word)


_MOST_RANGES = 2
"""Normalizations that pixels may have had, the likeliest of which are tried."""
_OF_BYTES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "was read as signed bytes (from 128 on negative)": lambda x: np.where(x > 127.5, x - 256, x),
    "was divided by 255 in whole numbers": lambda x: np.where(x > 254.5, 255.0, 0.0),
    "had 128 added to its bytes, which wrap,": lambda x: (x + 128) % 256,
}
"""Changes of bytes."""


def _in_bytes(
    array: np.ndarray, change: Callable[[np.ndarray], np.ndarray], by: Normalization, axes: PictureAxes | None
) -> np.ndarray:
    """Return what pixels are whose bytes were changed before they were normalized."""
    axes = axes or PictureAxes(0, 1, 2)
    mean, deviation = (axes.per_channel(each, array.ndim) for each in by.of_channels(array.shape[axes.channel]))
    return np.asarray((change((array.astype(np.float64) * deviation + mean) * 255) / 255 - mean) / deviation)


def _halved(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(np.float16)


def _wrapped(array: np.ndarray, dtype: type[np.integer]) -> np.ndarray:
    """Return numbers as C casts them: cut to whole numbers, of which the lowest 8 bits are kept."""
    whole = np.nan_to_num(array.astype(np.float64)).astype(np.int64)
    return whole.astype(dtype).astype(np.float64)
