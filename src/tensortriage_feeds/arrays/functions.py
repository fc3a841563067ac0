"""Functions of each number by itself, and of each sample by its own numbers, that a program applies to an input."""

import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from tensortriage_feeds.normalizations import Normalization, pixel_ranges
from tensortriage_feeds.pictures import PictureAxes
from tensortriage_feeds.transforms import Transform, of_input

KIND = "function"
_MU = 255.0
"""Of mu-law, ITU-T G.711."""
_EXPONENTS = 80.0
"""Largest number whose exponential float32 holds, with room for a scale."""
_LEAST_IN_SAMPLE = 4
"""Numbers of a sample that has a mean and a deviation of its own."""

Function = Callable[[np.ndarray], np.ndarray]


def functions(name: str, array: np.ndarray, axes: PictureAxes | None) -> Iterator[Transform]:
    """Yield functions that an input may have gone through, once too often or left out, and limits.

    Args:
        name: The input.
        array: The right tensor, of floats.
        axes: Its axes where it holds pictures.
    """
    wide = array.astype(np.float64)
    if array.size < _LEAST_IN_SAMPLE or not np.isfinite(wide).all() or not np.ptp(wide):
        return
    least, most = float(wide.min()), float(wide.max())
    for word, (words, function, cure) in _of_numbers(least, most).items():
        yield of_input(name, KIND, words, function, cure, function=word)
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (0.0, np.inf)):
        if least < low - 1e-3 or most > high + 1e-3:
            yield cut_off(name, low, high)
    yield from _of_samples(name, wide, axes)


def cut_off(name: str, low: float, high: float) -> Transform:
    """Return that numbers beyond two ends are those ends."""
    ends = [end for end in (low, high) if np.isfinite(end)]
    said = " and ".join(f"{end:g}" for end in ends)
    return of_input(name, KIND, f"is cut off at {said}", functools.partial(np.clip, a_min=low, a_max=high),
                    "clip {x} before it is normalized, or not at all", function="clip", ends=ends)  # fmt: skip


def mu_law(x: np.ndarray) -> np.ndarray:
    """Return samples from -1 to 1 as mu-law compands them."""
    return np.asarray(np.sign(x) * np.log1p(_MU * np.abs(x)) / np.log1p(_MU))


def _of_numbers(least: float, most: float) -> dict[str, tuple[str, Function, str]]:
    """Return the functions for numbers between these, by name: words, the function, the line that undoes it."""
    found: dict[str, tuple[str, Function, str]] = {}
    if least > 0.0:
        found["log"] = "is the logarithm of its numbers", np.log, "{x} = np.exp({x})"
        found["inverse"] = "is 1 over its numbers", np.reciprocal, "{x} = 1 / {x}"
    if least >= 0.0:
        found["sqrt"] = "is the square root of its numbers (magnitude for power)", np.sqrt, "{x} = {x} ** 2"
        found["square"] = "is the square of its numbers (power for magnitude)", np.square, "{x} = np.sqrt({x})"
        found["log1p"] = "is the logarithm of 1 plus its numbers", np.log1p, "{x} = np.expm1({x})"
    if most < _EXPONENTS:
        found["exp"] = "is the exponential of its numbers: a logarithm is left out", np.exp, "{x} = np.log({x})"
        if least > -1.0:
            found["expm1"] = "is exp(x) - 1: a log1p is left out", np.expm1, "{x} = np.log1p({x})"
    if least < 0.0:
        found["abs"] = "has lost its signs", np.abs, "hand {x} over with its signs"
        if least >= -1.0 and most <= 1.0:
            cure = "expand mu-law before {x} is filled: np.sign(y) * np.expm1(np.abs(y) * np.log(256)) / 255"
            found["mu-law"] = "is companded by mu-law (255)", mu_law, cure
    return found


def _of_samples(name: str, wide: np.ndarray, axes: PictureAxes | None) -> Iterator[Transform]:
    """Yield that each sample of a batch is put on a scale of its own."""
    if wide.ndim < 2 or len(wide) < 2 or wide[0].size < _LEAST_IN_SAMPLE:
        return
    channels = () if axes is None else tuple(each for each in range(wide.ndim) if each != axes.channel)
    ranges = [None] if axes is None else [None, *pixel_ranges(wide.min(axis=channels), wide.max(axis=channels))]
    for by, (words, function) in itertools.product(ranges, OWN.items()):
        yield of_input(name, "scale", f"is {words}, each index of axis 0",
                       functools.partial(_apart, function=function, by=by, axes=axes),
                       f"leave out the step that has each sample {words}", each=0)  # fmt: skip


def standardized(sample: np.ndarray, freedom: int = 0) -> np.ndarray:
    """Return numbers less their mean, over their deviation."""
    return np.asarray((sample - sample.mean()) / (sample.std(ddof=freedom) or 1.0))


OWN: dict[str, Function] = {
    "standardized by its own mean and deviation": standardized,
    "standardized by its own mean and deviation (n - 1)": functools.partial(standardized, freedom=1),
    "stretched from its least to its largest number to 0 to 1": lambda x: (x - x.min()) / (np.ptp(x) or 1.0),
    "divided by its largest magnitude": lambda x: x / (np.abs(x).max() or 1.0),
    "centred on its own mean": lambda x: x - x.mean(),
    "divided by its length (L2)": lambda x: x / (np.linalg.norm(x) or 1.0),
}
"""Ways to take the scale of numbers from the numbers themselves."""


def _apart(array: np.ndarray, function: Function, by: Normalization | None, axes: PictureAxes | None) -> np.ndarray:
    wide = array.astype(np.float64)
    if by is not None and axes is not None:
        mean, deviation = (axes.per_channel(each, wide.ndim) for each in by.of_channels(wide.shape[axes.channel]))
        wide = wide * deviation + mean
    return np.stack([function(sample) for sample in wide])
