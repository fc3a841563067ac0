"""Numbers of a program's own that outputs alone show: a scale and an offset, a gamma, a filter, by least squares.

Candidates are usual numbers. Others are solved for (Levenberg 1944, Marquardt 1963): what the outputs are off by is
made small, the reference run on inputs that differ a little in each number. Only what ends within limits is told, of
outputs that have several numbers for each one that was solved for.
"""

import functools
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tensortriage_feeds.arrays.input_numbers import scaled
from tensortriage_feeds.normalizations import PLAIN, Normalization, Renormalized, pixel_ranges
from tensortriage_feeds.pictures import PictureAxes, picture_axes
from tensortriage_feeds.transforms import Tensors, Transform, of_input
from tensortriage_feeds.two_feeds.usual_numbers import ALIKE, named

_FOR_EACH = 3
"""Numbers of outputs for each one that is solved for, at least."""
_MOST_NUMBERS, _MOST_COLUMNS = 4096, 16
"""Numbers of an output that are looked at, spread over it, and columns of a table that have numbers of their own."""
_MOST_ADDED = 64
"""Numbers of a slice that comes in where an axis is moved, all of them solved for."""
_STEPS = 15
"""Steps towards an answer."""
_LITTLE = 1e-3
"""Change of a number by which its effect is measured: fp32 leaves a thousandth of that effect."""
_LEAST_ROWS, _LEAST_SAMPLES = 8, 256
_EQUAL = 1e-4
"""Share by which numbers that were solved for may be others than equal ones, or 0: fp32's rounding of the outputs."""

Make = Callable[[np.ndarray], Transform]
Run = Callable[[Tensors], Tensors]


def solved_candidates(
    tensors: Tensors, run: Run, wanted: Tensors, limits: Mapping[str, float], *, seconds: float
) -> Iterator[tuple[Transform, float]]:
    """Yield transforms whose numbers were solved for, with the share of the outputs that each leaves.

    Args:
        tensors: The right feed.
        run: Runs the reference.
        wanted: The target's outputs.
        limits: As of `Wanted`; floats alone are looked at.
        seconds: How long for all of them.
    """
    names = [name for name in limits if wanted[name].dtype.kind == "f"]
    known = sum(min(wanted[name].size, _MOST_NUMBERS) for name in names)
    ends = time.perf_counter() + seconds
    for start, make in _families(tensors):
        if known >= _FOR_EACH * start.size and time.perf_counter() < ends:
            found = _solved(start, make, functools.partial(_off, tensors, run, wanted, names), ends)
            if found is not None:
                is_line = getattr(make, "func", None) is _line
                yield make(_tidied(found[0], tensors) if is_line else found[0]), found[1]


def _tidied(numbers: np.ndarray, tensors: Tensors) -> np.ndarray:
    """Return scales and offsets, equal ones made equal and those that are next to nothing 0; others as they are."""
    scale, offset = np.split(numbers, 2)
    largest = max(float(np.abs(array).max()) for array in tensors.values() if array.dtype.kind == "f")
    scale = np.where(np.ptp(scale) <= _EQUAL * np.abs(scale).max(), scale.mean(), scale)
    return np.concatenate([scale, np.where(np.abs(offset) <= _EQUAL * largest, 0.0, offset)])


def _families(tensors: Tensors) -> Iterator[tuple[np.ndarray, Make]]:
    """Yield numbers at which nothing is changed, and the transform of others."""
    for name, array in tensors.items():
        if array.dtype.kind != "f" or array.size < 2 or not np.isfinite(array).all():
            continue
        axes = picture_axes(array.shape)
        if axes is not None:
            over = tuple(axis for axis in range(array.ndim) if axis != axes.channel)
            for by in list(pixel_ranges(array.min(axis=over), array.max(axis=over)))[:1]:
                yield np.ones(1), functools.partial(_gamma, name, array, axes, by)
        elif array.shape[-1] >= _LEAST_SAMPLES:
            yield np.zeros(1), functools.partial(_filter, name)
        table = array.ndim == 2 and len(array) >= _LEAST_ROWS and array.shape[1] <= _MOST_COLUMNS
        by_axis = PictureAxes(1, 0, 0) if axes is None and table else axes
        for each in dict.fromkeys((None, by_axis)):
            count = 1 if each is None else array.shape[each.channel]
            yield np.repeat([1.0, 0.0], count), functools.partial(_line, name, array, each)
    for name, array in tensors.items():
        if array.dtype.kind == "f" and array.ndim > 2 and np.isfinite(array).all():
            yield from _moved_on(name, array)


def _moved_on(name: str, array: np.ndarray) -> Iterator[tuple[np.ndarray, Make]]:
    """Yield that an axis begins one index later or earlier, and what comes in at its end."""
    for axis in range(1, array.ndim):
        slices = np.moveaxis(array, axis, 0).astype(np.float64)
        if len(slices) > 2 and slices[0].size <= _MOST_ADDED:
            for step, end in ((1, 0), (-1, -1)):
                yield slices[end].ravel(), functools.partial(_later, name, axis, step)


def _later(name: str, axis: int, step: int, numbers: np.ndarray) -> Transform:
    def apply(x: np.ndarray) -> np.ndarray:
        moved = np.roll(np.moveaxis(x, axis, 0), step, 0).astype(np.float64)
        moved[0 if step > 0 else -1] = numbers.reshape(moved.shape[1:])
        return np.moveaxis(moved, 0, axis)

    side = "first" if step > 0 else "last"
    return of_input(name, "shifted", f"is moved by {step} along axis {axis}, another {side} index before it"
                    if step > 0 else f"is moved by {step} along axis {axis}, another {side} index behind it", apply,
                    f"begin at the same index of axis {axis} as the reference (how a window is padded or centred)",
                    axis=axis, shift=step)  # fmt: skip


def _line(name: str, array: np.ndarray, axes: PictureAxes | None, numbers: np.ndarray) -> Transform:
    scale, offset = np.split(numbers, 2)
    told = named(scale, offset, array, axes, ALIKE) if np.all(scale > 0.0) else None
    told = told or Renormalized("scale" if len(scale) == 1 else "normalization", "fitted", scale, offset)
    return scaled(name, Renormalized(told.kind, told.words, scale, offset), axes, array.ndim)


def _gamma(name: str, array: np.ndarray, axes: PictureAxes, by: Normalization, numbers: np.ndarray) -> Transform:
    mean, deviation = (axes.per_channel(each, array.ndim) for each in by.of_channels(array.shape[axes.channel]))
    power = float(np.clip(numbers[0], 0.05, 20.0))

    def apply(x: np.ndarray) -> np.ndarray:
        return np.asarray((np.power(np.maximum(x * deviation + mean, 0.0), power) - mean) / deviation)

    before = "" if by is PLAIN else f" before it is normalized to {by.words}"
    return of_input(name, "gamma", f"is raised to the power {power:.4g}{before} (a gamma)", apply,
                    f"undo it: {{x}} ** {1 / power:.4g}, in numbers from 0 to 1",
                    gamma=float(f"{power:.4g}"))  # fmt: skip


def _filter(name: str, numbers: np.ndarray) -> Transform:
    tap = float(numbers[0])

    def apply(x: np.ndarray) -> np.ndarray:
        return np.asarray(x + tap * np.concatenate([np.zeros_like(x[..., :1]), x[..., :-1]], -1))

    told = [1.0, float(f"{tap:.4g}")]
    emphasis = " (pre-emphasis)" if -1.0 <= tap < 0.0 else ""
    return of_input(name, "filter", f"is filtered, each sample and those before it by {told}{emphasis}", apply,
                    "leave the filter out, or train with it", taps=told)  # fmt: skip


def _off(
    tensors: Tensors, run: Run, wanted: Tensors, names: list[str], transform: Transform | None
) -> np.ndarray | None:
    """Return what outputs are off by on changed inputs, as shares of each; None where the reference does not run."""
    made = run(tensors if transform is None else transform(tensors))
    parts = []
    for name in names:
        if name not in made or made[name].shape != wanted[name].shape:
            return None
        one, other = (np.asarray(each[name], np.float64).ravel() for each in (made, wanted))
        few = np.linspace(0, one.size - 1, min(one.size, _MOST_NUMBERS)).astype(int)
        parts.append((one - other)[few] / (np.sqrt(np.mean(other**2) * few.size) or 1.0))
    found = np.concatenate(parts)
    return found if np.isfinite(found).all() else None


def _solved(
    start: np.ndarray, make: Make, off: Callable[[Transform], np.ndarray | None], ends: float
) -> tuple[np.ndarray, float] | None:
    """Return the numbers that leave least, and what they leave; None where the first step leads nowhere."""
    numbers, left = start, off(make(start))
    first = float(np.linalg.norm(left)) if left is not None else 0.0
    damping = 1e-3
    for _ in range(_STEPS):
        if left is None or not np.any(left) or time.perf_counter() > ends:
            break
        little = _LITTLE * np.maximum(np.abs(numbers), 0.1)
        moved = [off(make(numbers + step)) for step in np.diag(little)]
        if any(each is None for each in moved):
            return None
        slopes = np.stack([(each - left) / by for each, by in zip(moved, little, strict=True) if each is not None])
        square = slopes @ slopes.T
        for _ in range(4):
            step = np.linalg.lstsq(square + damping * np.diag(np.diag(square)), -slopes @ left, rcond=None)[0]
            other = off(make(numbers + step))
            if other is not None and np.linalg.norm(other) < np.linalg.norm(left):
                break
            damping *= 10.0
        else:
            break
        gain = np.linalg.norm(left) / max(float(np.linalg.norm(other)), 1e-30)
        numbers, left, damping = numbers + step, other, damping / 10.0
        if gain < 1.01:
            break
    final = float(np.linalg.norm(left)) if left is not None else first
    return (numbers, final) if final < first / 10.0 else None
