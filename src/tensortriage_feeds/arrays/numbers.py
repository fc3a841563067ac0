"""Numbers that a program returns in another unit, as integers, or in another type than they have in memory."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tensortriage.diagnose.sdk import EQUAL_IN_FP32, rms_error, stored_type
from tensortriage_feeds.transforms import CHANCE_BITS

CLEARER = 100.0
"""By so much a change has to come nearer to the outputs than none."""
_ENDS = (-32768, -128, 0, 127, 255, 32767, 65535)
"""Ends of the types of quantized numbers, at which others are cut off."""
_LEAST_OF_LEVEL = 4
"""Numbers for each level, on the average, of an output that was quantized."""
_ROUNDED = 0.75
"""Largest distance from a line that is fitted to rounded numbers: half, and what the fit itself is off by."""


class Returned(NamedTuple):
    """The change to an output: as the rest of a sentence, and its inverse or its form in the model."""

    words: str
    cure: str


def elsewhere(order: str) -> Returned:
    """Return that an output is the model's in another order, which is given in words."""
    return Returned(f"the model's in other places ({order})", "return that output in the order of the model")


def other_numbers(right: np.ndarray, made: np.ndarray) -> Iterator[Returned]:
    """Yield what other numbers an output has: of another type in memory, integers, of another unit.

    Args:
        right: The right output, float64, finite.
        made: What the program returns, of the same shape, of any real type.
    """
    if np.ptp(right) == 0.0:
        return
    with np.errstate(all="ignore"):
        yield from reread(right, made)
        given = made.astype(np.float64).ravel()
        if np.isfinite(given).all() and np.ptp(given) > 0.0:
            is_whole = bool(np.array_equal(given, np.rint(given)))
            yield from (_quantized if is_whole else other_unit)(right.ravel(), given)
            yield from _on_a_grid(right.ravel(), given)


def counted_from(right: np.ndarray, made: np.ndarray) -> Returned | None:
    """Return that all whole numbers of an output are too large or too small by one number; None where they are not."""
    given = made.astype(np.float64)
    off = given - right
    by = float(off.flat[0]) if off.size else 0.0
    kinds = float(np.ptp(right)) + 1.0 if right.size else 1.0
    if by == 0.0 or np.any(off != by) or right.size * np.log2(kinds) < CHANCE_BITS:
        return None
    return Returned(
        f"the model's {'plus' if by > 0 else 'minus'} {abs(by):g} everywhere",
        "count from 0, as the model does, and look labels up from there (a background class, a list that begins at 1)",
    )


def narrowed(right: np.ndarray, made: np.ndarray) -> Iterator[Returned]:
    """Yield the type of fewer bits through which whole numbers went, to the last bit: wrapped, or cut at its ends."""
    for dtype in map(np.dtype, ("int32", "uint32", "int16", "uint16", "int8", "uint8")):
        ends, power = np.iinfo(dtype), 8 * dtype.itemsize - (dtype.kind == "i")
        ways = {
            f"as {dtype} holds it, which wraps at 2^{power}": right.astype(dtype),
            f"cut off at the ends of {dtype}": np.clip(right, ends.min, ends.max),
        }
        for words, numbers in ways.items():
            same = np.array_equal(numbers.astype(np.float64), made.astype(np.float64))
            if same and np.count_nonzero(numbers != right) * np.log2(float(ends.max)) >= CHANCE_BITS:
                yield Returned(
                    f"the model's {words}", f"keep that output in {right.dtype}, or check that it fits {dtype}"
                )


def reread(right: np.ndarray, made: np.ndarray) -> Iterator[Returned]:
    """Yield the type in which the bytes of an output are the right numbers, of as many as fit into it."""
    if found := stored_type(right, made):
        yield Returned(
            f"the bytes of the model's in {found[0]}, read as {found[1]}",
            f"read that output as {found[0]}, the type that the engine writes, and convert its numbers then",
        )


def _quantized(right: np.ndarray, given: np.ndarray) -> Iterator[Returned]:
    """Yield the scale and zero point by which whole numbers are the right ones, cut off at the ends of a type."""
    inner = ~np.isin(given, _ENDS)
    free = int(np.count_nonzero(inner)) - 2  # a line goes through any two
    if free < 1 or np.ptp(right[inner]) == 0.0 or free * np.log2(np.ptp(given)) < CHANCE_BITS:
        return
    by, plus = (float(number) for number in np.polyfit(right[inner], given[inner], 1))
    zero, scale = int(np.rint(plus)), 1.0 / by if by else 0.0
    if scale > 0.0 and np.abs(by * right[inner] + zero - given[inner]).max() <= _ROUNDED:
        yield Returned(
            f"the model's, left as quantized integers (scale about {scale:.3g}, zero point {zero})",
            f"dequantize that output, about (y {'-' if zero >= 0 else '+'} {abs(zero)}) * {scale:.3g}, with the scale "
            "and zero point that the engine gives with it",
        )


def _on_a_grid(right: np.ndarray, given: np.ndarray) -> Iterator[Returned]:
    """Yield the scale and zero point, other ones than the model's, by which quantized numbers were made real again."""
    levels = np.unique(given)
    steps = np.diff(levels)
    if not 2 < levels.size <= given.size / _LEAST_OF_LEVEL or np.abs(steps / steps.min() % 1 - 0.5).min() < 0.49:
        return
    step = float(np.median(steps[steps < 1.5 * steps.min()]))
    inner = (given > levels[0]) & (given < levels[-1])
    if not np.ptp(right[inner]):
        return
    by, plus = (float(number) for number in np.polyfit(right[inner], given[inner], 1))
    is_own = abs(by - 1.0) < step / np.ptp(given[inner]) * 2 and abs(plus) <= step
    if is_own or np.abs(by * right[inner] + plus - given[inner]).max() > _ROUNDED * step:
        return
    factor = f"multiplied by {by:.3g} and " if abs(by - 1.0) >= step / np.ptp(given[inner]) * 2 else ""
    yield Returned(
        f"the model's {factor}moved by {round(plus / step) * step:.4g}, in steps of {step:.3g}: quantized numbers with "
        "another scale or zero point than the engine's",
        "dequantize that output with the scale and the zero point that the engine gives with it: (y - zero) * scale",
    )


def other_unit(right: np.ndarray, given: np.ndarray) -> Iterator[Returned]:
    """Yield a factor and an offset of all numbers, fitted.

    Args:
        right: The right numbers, float64, finite, in a row.
        given: Those of the program, likewise.
    """
    if right.size < 4:
        return
    by, plus = (float(number) for number in np.polyfit(right, given, 1))
    plus = round(plus, int(-np.floor(np.log10(EQUAL_IN_FP32 * np.abs(given).max()))))  # to what fp32 tells
    line = by * right + plus
    if np.std(line) < CLEARER * EQUAL_IN_FP32 * np.abs(given).max():  # next to constant: anything fits
        return
    if rms_error(given, line) < min(EQUAL_IN_FP32, rms_error(given, right) / CLEARER):
        factor = f"multiplied by {by:.6g}" if abs(by - 1.0) > EQUAL_IN_FP32 else ""
        offset = f"moved by {plus:.6g}" if plus else ""
        moved_back = f"(y {'-' if plus > 0 else '+'} {abs(plus):.6g})" if plus else "y"
        yield Returned(
            f"the model's {' and '.join(filter(None, (factor, offset)))}",
            f"leave that out, or undo it: {moved_back}" + (f" / {by:.6g}" if factor else ""),
        )
