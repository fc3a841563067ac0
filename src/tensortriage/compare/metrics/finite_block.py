"""A block of finite real numbers: every figure in as few sweeps over it as possible.

A sweep costs about 0.1 ns an element while the block is in cache. Calls cost too: a microsecond each, and when threads
share the work each call makes the others wait for their turn in Python. So blocks are large, rows of one array let one
call serve several, and a sweep is left out where a bound shows that it could find nothing new.
"""

import math
from typing import Any

import numpy as np

from tensortriage.compare.metrics import blocks, max_ulp
from tensortriage.compare.metrics.block_totals import BlockTotals
from tensortriage.compare.metrics.blocks import SCRATCH
from tensortriage.compare.metrics.dtype_pairs import Lane, load
from tensortriage.compare.metrics.peaks import peaks, places_reaching

ZERO_REFERENCE = float(np.finfo(np.float64).eps)
"""Divisor of relative errors where the reference is exactly zero, as Polygraphy's ``simple`` comparison does."""

_BOOL = np.dtype(np.bool_)
_RARE = 256
_FIRST = 1024


def same_memory(bits: np.dtype[Any], reference: np.ndarray, target: np.ndarray) -> bool:
    """Return whether two blocks hold the same bits, seen as integers of the given type.

    Args:
        bits: An integer type as wide as the elements.
        reference: A flat block.
        target: Another of the same size and type.
    """
    one, other = reference.view(bits), target.view(bits)
    if np.not_equal(one[:_FIRST], other[:_FIRST]).any():  # so it is mostly, where it is at all
        return False
    return not np.not_equal(one, other, out=SCRATCH.get("mask", _BOOL, reference.size)).any()


def tally_equal(tally: BlockTotals, way: Lane, values: np.ndarray, start: int) -> bool:
    """Add a block without any error; False, with nothing added, when it is not plain.

    Args:
        tally: The totals, changed in place.
        way: How blocks of this pair of types are computed.
        values: A flat block; it is both sides.
        start: Flat index of its first element in its tensor.
    """
    assert way.work is not None
    values = load(values, way.work, "reference", finite=True)
    largest = _largest_magnitude(values)
    if not _within(largest, way.bounds):
        return False
    squares = float(blocks.inner_products(values, values))
    tally.compared += values.size
    tally.zero_samples += len(range(-start % tally.stride, values.size, tally.stride))
    tally.add_products(squares, squares, squares)
    tally.add_maxima(largest, largest, 0.0)
    return True


def tally_plain(
    tally: BlockTotals,
    way: Lane,
    sides: tuple[np.ndarray, np.ndarray],
    start: int,
    compute: tuple[np.dtype[Any], tuple[float, float] | None],
    compared: np.ndarray | None = None,
) -> bool:
    """Add a block of finite values; False, with nothing added, when it is not within the bounds.

    Args:
        tally: Totals to add to.
        way: Lane of the two element types.
        sides: Values of the reference and of the target as they are stored.
        start: Flat index of the first element of the block.
        compute: Type to compute in, that of the lane or float64; and the range of the maxima of errors and magnitudes,
            zero aside: None to accept any.
        compared: Which values count; the others are zero on both sides. None when all do.
    """
    (reference_raw, target_raw), (work, bounds) = sides, compute
    reference = load(reference_raw, work, "reference", finite=bounds is not None)
    target = load(target_raw, work, "target", finite=bounds is not None)
    stack = SCRATCH.rows("stack", work, 3, reference.size)
    _, errors, magnitudes = stack
    np.subtract(target, reference, out=errors)
    np.abs(errors, out=errors)
    np.abs(reference, out=magnitudes)
    error_max, reference_max = np.maximum.reduce(stack[1:], axis=1).tolist()
    target_max = _target_max(tally, target, error_max, reference_max)
    if bounds and not all(_within(largest, bounds) for largest in (error_max, reference_max, target_max)):
        return False
    relative_peaks, zero_error_max = _divide(tally, stack)
    relative_max = float(np.maximum.reduce(relative_peaks))
    relative_sum, error_sum = blocks.inner_products(stack[:2], blocks.ones(work)).tolist()
    if bounds and not math.isfinite(relative_sum):
        return False
    error_squares, reference_squares = blocks.inner_products(stack[1:], stack[1:]).tolist()
    target_squares = float(blocks.inner_products(target, target))
    if 4 * error_squares < reference_squares:
        # Then both sides are alike, and |t - r|^2 = |r|^2 + |t|^2 - 2 r.t will do.
        products = (reference_squares + target_squares - error_squares) / 2
    else:
        products = float(blocks.inner_products(reference, target))
    distance = error_max
    if way.ulp is not None:
        block = max_ulp.Block(
            way, reference_raw, target_raw, reference, target, stack, relative_peaks, relative_max,
            zero_error_max, max(reference_max, target_max),
        )  # fmt: skip
        distance = max_ulp.distance(block, tally.ulp_max)
    tally.add_products(reference_squares, target_squares, products)
    tally.add_maxima(reference_max, target_max, distance)
    tally.add_relative(max(relative_max, zero_error_max / ZERO_REFERENCE), relative_sum)
    add_errors(tally, errors, (error_max, error_sum, error_squares), start, compared)
    return True


def add_errors(
    tally: BlockTotals,
    errors: np.ndarray,
    figures: tuple[float, float, float],
    start: int,
    compared: np.ndarray | None,
) -> None:
    """Add finite errors and their sums; ``compared`` as in `tally_plain`.

    Args:
        tally: The totals, changed in place.
        errors: Absolute errors of one block, flat.
        figures: Their maximum, their sum, and the sum of their squares.
        start: Flat index of the block's first element in its tensor.
        compared: Which elements count, a flat mask; None for all.
    """
    largest, error_sum, square_sum = figures
    tally.compared += errors.size if compared is None else int(np.count_nonzero(compared))
    tally.nonzero_errors += int(
        np.count_nonzero(errors.view(f"i{errors.itemsize}"))
    )  # Faster than of floats, and none is -0.
    tally.error_sum += error_sum
    tally.error_square_sum += square_sum
    tally.error_max = max(tally.error_max, largest)
    tally.consider(errors, largest, start)
    sampled = slice(-start % tally.stride, None, tally.stride)
    tally.samples.append(errors[sampled].copy() if compared is None else errors[sampled][compared[sampled]])


def divide(errors: np.ndarray, magnitudes: np.ndarray, relative: np.ndarray) -> tuple[np.ndarray, float]:
    """Write errors relative to magnitudes, which may contain zeros.

    Args:
        errors: Absolute errors.
        magnitudes: Magnitudes of the reference.
        relative: Row to write to.

    Returns:
        Peaks of the relative errors where the reference is not zero, of the errors themselves where it is; and the
        largest error where it is zero, 0 if nowhere.
    """
    zeros = np.equal(magnitudes, 0, out=SCRATCH.get("mask", _BOOL, errors.size))
    np.add(magnitudes, zeros, out=relative)
    np.divide(errors, relative, out=relative)
    maxima = peaks(relative)
    at_zeros = np.multiply(zeros, errors, out=SCRATCH.get("at_zeros", errors.dtype, errors.size))
    zero_error = float(np.maximum.reduce(at_zeros))
    if zero_error > 0.0:
        np.multiply(at_zeros, errors.dtype.type(1 / ZERO_REFERENCE), out=at_zeros)
        np.maximum(relative, at_zeros, out=relative)
    return maxima, zero_error


def _divide(tally: BlockTotals, stack: np.ndarray) -> tuple[np.ndarray, float]:
    """Do the work of `divide`, faster where the target is zero at nearly all zeros of the reference."""
    relative, errors, magnitudes = stack
    np.divide(errors, magnitudes, out=relative)
    if tally.agreeing_zeros:
        np.fmax(relative, 0, out=relative)  # NaN, of 0 / 0, is no error
    maxima = peaks(relative)
    largest = float(np.maximum.reduce(maxima))
    if math.isnan(largest) and not tally.agreeing_zeros:
        tally.agreeing_zeros = True
        return _divide(tally, stack)
    if math.isfinite(largest):
        return maxima, 0.0
    places = places_reaching(relative, maxima, math.inf)
    if places.size > errors.size // _RARE or magnitudes[places].any():
        return divide(errors, magnitudes, relative)
    relative[places] = 0.0
    maxima = peaks(relative)
    at_zeros = errors[places]
    relative[places] = at_zeros / ZERO_REFERENCE
    return maxima, float(at_zeros.max())


def _target_max(tally: BlockTotals, target: np.ndarray, error_max: float, reference_max: float) -> float:
    """Return the largest magnitude of the target, or a bound that does not exceed the tally's maximum."""
    bound = 1.001 * (reference_max + error_max)
    # Where errors are small the target's maximum is near the bound, so that limits hold for both or for none.
    return bound if 2 * error_max <= reference_max and bound <= tally.target_max else _largest_magnitude(target)


def _largest_magnitude(values: np.ndarray) -> float:
    return max(float(np.maximum.reduce(values)), -float(np.minimum.reduce(values)))


def _within(largest: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= largest <= bounds[1] or largest == 0.0
