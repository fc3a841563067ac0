"""Everything about one block of a tensor pair, in one visit.

Real numbers are computed in the float type that holds both sides exactly. One look at three maxima tells whether the
block is plain: finite, and far enough from the limits of float32 for squares to be exact enough. If not, the elements
that are not finite are counted and cleared, and what is out of range is computed in float64. Complex numbers, large
64-bit integers and strings are rare and take a way of their own.
"""

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from tensortriage.compare import blocks, ulp
from tensortriage.compare.blocks import SCRATCH
from tensortriage.compare.tally import Tally
from tensortriage.values.dtype import DType

_F32 = np.dtype(np.float32)
_F64 = np.dtype(np.float64)
_BF16 = DType.BFLOAT16.numpy
_BOOL = np.dtype(np.bool_)
_INTEGER: dict[np.dtype[Any], np.dtype[Any]] = {_F32: np.dtype(np.int32), _F64: np.dtype(np.int64)}
_SMALLEST_NORMAL = {_F32: float(np.finfo(_F32).smallest_normal), _F64: float(np.finfo(_F64).smallest_normal)}
ZERO_REFERENCE = float(np.finfo(np.float64).eps)
"""What relative errors divide by where the reference is exactly zero, as Polygraphy's ``simple`` comparison does."""

# Maxima outside these bounds would make squares overflow, or underflow to an error that is not negligible.
_SAFE = {_F32: (2.0**-42, 2.0**50), _F64: (2.0**-400, 2.0**400)}


@dataclasses.dataclass(frozen=True, slots=True)
class Lane:
    """How pairs of two element types are computed.

    Attributes:
        work: float32 or float64, holding every value of both types exactly (64-bit integers while they are below
            2**53); None for strings and complex numbers.
        bits: Unsigned integer type to compare the memory of both sides with; None when their types differ.
        ulp: Type whose representable numbers errors are counted in; None for integers, whose unit is 1.
        ulp_shift: Set when the distance in ``ulp`` is the distance of the float32 bits divided by 2 to this power.
        is_text: Whether both are strings.
        is_wide_integer: Whether both are integers and one of them has 64 bits.
    """

    work: np.dtype[Any] | None
    bits: np.dtype[Any] | None
    ulp: np.dtype[Any] | None
    ulp_shift: int | None
    is_text: bool = False
    is_wide_integer: bool = False


@functools.cache
def lane(reference: np.dtype[Any], target: np.dtype[Any]) -> Lane | None:
    """Return the lane for two numpy types; None when only one of them is a string.

    Raises:
        UsageError: For a type without ONNX counterpart (``dtype-unknown``).
    """
    reference, target = reference.newbyteorder("="), target.newbyteorder("=")
    kinds = {DType.from_numpy(reference), DType.from_numpy(target)}
    if DType.STRING in kinds:
        return Lane(None, None, None, None, is_text=True) if len(kinds) == 1 else None
    is_complex = any(kind.numpy.kind == "c" for kind in kinds)
    narrow = all(kind is DType.FLOAT or kind.numpy.itemsize <= 2 for kind in kinds)
    work = None if is_complex else _F32 if narrow else _F64
    wide = kinds & {DType.INT64, DType.UINT64} and not any(kind.is_float for kind in kinds)
    unit = ulp.coarser(reference, target)
    # A bfloat16 is the upper half of a float32.
    shift = 0 if unit == work else 16 if reference == target == _BF16 else None
    bits = np.dtype(f"u{reference.itemsize}") if reference == target and not is_complex else None
    return Lane(work, bits, unit, shift, is_wide_integer=bool(wide) and not is_complex)


def tally_block(tally: Tally, way: Lane, reference: np.ndarray, target: np.ndarray, start: int) -> None:
    """Add one block to the totals.

    Args:
        tally: Totals to add to.
        way: Lane of the two element types.
        reference: Flat, contiguous, native array of at most `blocks.BLOCK` elements.
        target: Likewise, of the same size.
        start: Flat index of the first element.
    """
    if way.is_text:
        _tally_text(tally, reference, target, start)
    elif way.work is None or (way.is_wide_integer and not _fits_float64(reference, target)):
        _tally_rare(tally, way, reference, target, start)
    # Tensors that have begun to differ rarely stop doing so; looking again in each block would be wasted.
    elif way.bits is not None and tally.nonzero_errors == 0 and _same_memory(way.bits, reference, target):
        if not _tally_equal(tally, way.work, reference, start):
            _tally_odd(tally, way, reference, target, start)
    elif not _tally_plain(tally, way, reference, target, start, work=way.work, bounds=_SAFE[way.work]):
        _tally_odd(tally, way, reference, target, start)


def _fits_float64(reference: np.ndarray, target: np.ndarray) -> bool:
    return all(side.min() >= -(2**53) and side.max() <= 2**53 for side in (reference, target))


def _same_memory(bits: np.dtype[Any], reference: np.ndarray, target: np.ndarray) -> bool:
    differs = SCRATCH.get("mask", _BOOL, reference.size)
    return not np.not_equal(reference.view(bits), target.view(bits), out=differs).any()


def _tally_equal(tally: Tally, work: np.dtype[Any], values: np.ndarray, start: int) -> bool:
    """Add a block without any error; False, with nothing added, when it is not plain."""
    values = _load(values, work, "reference")
    largest = max(float(values.max()), -float(values.min()))
    if not _within(largest, _SAFE[work]):
        return False
    squares = float(blocks.inner_products(values, values))
    tally.compared += values.size
    tally.zero_samples += len(range(-start % tally.stride, values.size, tally.stride))
    tally.add_products(squares, squares, squares)
    tally.add_maxima(largest, largest, 0.0)
    return True


def _tally_plain(
    tally: Tally,
    way: Lane,
    reference_raw: np.ndarray,
    target_raw: np.ndarray,
    start: int,
    *,
    work: np.dtype[Any],
    bounds: tuple[float, float] | None,
    compared: np.ndarray | None = None,
) -> bool:
    """Add a block of finite values; False, with nothing added, when it is not within the bounds.

    Args:
        tally: Totals to add to.
        way: Lane of the two element types.
        reference_raw: Values as they are stored.
        target_raw: Likewise.
        start: Flat index of the first element of the block.
        work: Type to compute in: that of the lane, or float64.
        bounds: What the maxima of errors and magnitudes must be between, or zero; None to take any.
        compared: Which values count; the others are zero on both sides. None when all do.
    """
    reference = _load(reference_raw, work, "reference")
    target = _load(target_raw, work, "target")
    # Rows of one array, so that one call serves several: threads take turns in Python, so calls are what they wait for.
    stack = SCRATCH.rows("stack", work, 3, reference.size)
    relative, errors, reference_abs = stack
    np.subtract(target, reference, out=errors)
    np.abs(errors, out=errors)
    np.abs(reference, out=reference_abs)
    error_max, reference_max = stack[1:].max(axis=1).tolist()
    target_max = max(float(target.max()), -float(target.min()))
    if bounds and not all(_within(largest, bounds) for largest in (error_max, reference_max, target_max)):
        return False
    smallest = float(reference_abs.min())
    _divide(errors, reference_abs, relative, smallest)
    relative_max = float(relative.max())
    relative_sum, error_sum = blocks.inner_products(stack[:2], blocks.ones(work)).tolist()
    if bounds and not math.isfinite(relative_sum):
        return False
    error_squares, reference_squares = blocks.inner_products(stack[1:], stack[1:]).tolist()
    target_squares = float(blocks.inner_products(target, target))
    if (
        4 * error_squares < reference_squares
    ):  # Then both sides are alike, and |t - r|^2 = |r|^2 + |t|^2 - 2 r.t will do.
        products = (reference_squares + target_squares - error_squares) / 2
    else:
        products = float(blocks.inner_products(reference, target))
    if way.ulp is None:
        distance = error_max
    elif way.ulp_shift is None or work != way.work:
        distance = ulp.max_distance(reference_raw, target_raw, way.ulp)
    else:
        distance = _ulp(reference, target, stack, smallest, relative_max) / 2.0**way.ulp_shift
    tally.add_products(reference_squares, target_squares, products)
    tally.add_maxima(reference_max, target_max, distance)
    tally.add_relative(relative_max, relative_sum)
    _add_errors(tally, errors, error_max, error_sum, error_squares, start, compared)
    return True


def _tally_odd(tally: Tally, way: Lane, reference: np.ndarray, target: np.ndarray, start: int) -> None:
    """Add a block of real numbers that is not plain: not finite, or out of the range of exact squares."""
    assert way.work is not None
    sides = _load(reference, way.work, "reference"), _load(target, way.work, "target")
    compared = _set_aside_nonfinite(tally, *sides, start)
    if compared is not None:
        # In the work type, because a stored type may lack a zero (float8_e8m0fnu).
        reference, target = _cleared(sides[0], compared, "one"), _cleared(sides[1], compared, "other")
        bounds = _SAFE[way.work]
        if _tally_plain(tally, way, reference, target, start, work=way.work, bounds=bounds, compared=compared):
            return
    _tally_plain(tally, way, reference, target, start, work=_F64, bounds=None, compared=compared)


def _set_aside_nonfinite(tally: Tally, reference: np.ndarray, target: np.ndarray, start: int) -> np.ndarray | None:
    """Count what is not finite; return which elements are finite on both sides, None when all are."""
    finite = np.isfinite(reference), np.isfinite(target)
    counts = [int(np.count_nonzero(side)) for side in finite]
    if min(counts) == reference.size:
        return None
    compared: np.ndarray = finite[0] & finite[1]
    both = int(np.count_nonzero(compared))
    # A value that is finite on its own side only belongs to the range of its tensor, though to no error.
    largest = [
        float(np.abs(side[good & ~compared]).max()) if count > both else -1.0
        for side, good, count in zip((reference, target), finite, counts, strict=True)
    ]
    tally.add_maxima(largest[0], largest[1], 0.0)
    nans = np.isnan(reference), np.isnan(target)
    nan_counts = [int(np.count_nonzero(side)) for side in nans]
    tally.nan_reference += nan_counts[0]
    tally.nan_target += nan_counts[1]
    tally.inf_reference += reference.size - counts[0] - nan_counts[0]
    tally.inf_target += reference.size - counts[1] - nan_counts[1]
    mismatched = ~(compared | (reference == target) | (nans[0] & nans[1]))
    if mismatched.any():
        positions = np.flatnonzero(mismatched)
        tally.nonfinite_mismatch += positions.size
        tally.consider_nonfinite(positions, start)
    return compared


def _cleared(values: np.ndarray, keep: np.ndarray, role: str) -> np.ndarray:
    """Return a copy with zero where values are not to be kept: they then add nothing to any sum or maximum."""
    buffer = SCRATCH.get(role, values.dtype, values.size)
    bits = f"u{values.itemsize}"  # As integers, because NaN times zero is NaN.
    np.multiply(values.view(bits), keep, out=buffer.view(bits))
    return buffer


def _within(largest: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= largest <= bounds[1] or largest == 0.0


def _load(values: np.ndarray, work: np.dtype[Any], role: str) -> np.ndarray:
    """Return a block in the work type: itself, or converted into a buffer."""
    if values.dtype == work:
        return values
    buffer = SCRATCH.get(role, work, values.size)
    table = _values_of_bits(values.dtype, work)
    if table is None:
        np.copyto(buffer, values, casting="unsafe")
    else:
        np.take(table, values.view(f"u{values.itemsize}"), out=buffer, mode="clip")
    return buffer


@functools.cache
def _values_of_bits(dtype: np.dtype[Any], work: np.dtype[Any]) -> np.ndarray | None:
    """Return the value of every bit pattern of a small type that numpy converts slowly; None for the other types."""
    if dtype.itemsize > 2 or dtype == _BF16 or dtype.kind in "biu":
        return None
    return np.asarray(np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype).astype(work))


def _divide(errors: np.ndarray, reference_abs: np.ndarray, relative: np.ndarray, smallest: float) -> None:
    """Write relative errors into ``relative``; ``smallest`` is the smallest magnitude of the reference."""
    if smallest > 0:
        np.divide(errors, reference_abs, out=relative)
        return
    zeros = np.equal(reference_abs, 0, out=SCRATCH.get("mask", _BOOL, errors.size))
    # Adding is exact, either operand being zero, and faster than a masked assignment.
    np.multiply(zeros, errors.dtype.type(ZERO_REFERENCE), out=relative)
    np.add(reference_abs, relative, out=relative)
    np.divide(errors, relative, out=relative)


def _ulp(reference: np.ndarray, target: np.ndarray, stack: np.ndarray, smallest: float, relative_max: float) -> float:
    """Return the largest distance in representable numbers of the work type; arguments as in `_tally_plain`."""
    if relative_max >= 0.5 and smallest >= _SMALLEST_NORMAL[reference.dtype]:
        # With p bits of mantissa, an element whose relative error is at least 1/2 is at least 2**p / 3 numbers away,
        # and one below 1/12 less than that. So only few elements can be the farthest.
        far = np.greater_equal(stack[0], 1 / 12, out=SCRATCH.get("mask", _BOOL, reference.size))
        if np.count_nonzero(far) < reference.size // 16:
            found = np.flatnonzero(far)
            return ulp.max_distance(reference[found], target[found], reference.dtype)
    integer = _INTEGER[reference.dtype]
    scratch, theirs = SCRATCH.rows("integers", integer, 2, reference.size)
    ours = stack[2].view(integer)
    np.abs(target, out=theirs.view(target.dtype))
    if relative_max < 0.5 and smallest > 0:  # Then no sign differs.
        return ulp.distance_of_bits(ours, theirs, None, scratch)
    signs = SCRATCH.get("signs", integer, reference.size)
    np.bitwise_xor(reference.view(integer), target.view(integer), out=signs)
    return ulp.distance_of_bits(ours, theirs, signs, scratch)


def _add_errors(
    tally: Tally,
    errors: np.ndarray,
    largest: float,
    error_sum: float,
    square_sum: float,
    start: int,
    compared: np.ndarray | None,
) -> None:
    """Add finite errors and their sums; ``compared`` as in `_tally_plain`."""
    unequal = np.not_equal(errors, 0, out=SCRATCH.get("mask", _BOOL, errors.size))
    tally.compared += errors.size if compared is None else int(np.count_nonzero(compared))
    tally.nonzero_errors += int(np.count_nonzero(unequal))
    tally.error_sum += error_sum
    tally.error_square_sum += square_sum
    tally.error_max = max(tally.error_max, largest)
    tally.consider(errors, largest, start)
    sampled = slice(-start % tally.stride, None, tally.stride)
    tally.samples.append(errors[sampled].copy() if compared is None else errors[sampled][compared[sampled]])


def _tally_rare(tally: Tally, way: Lane, reference: np.ndarray, target: np.ndarray, start: int) -> None:
    """Add a block of complex numbers or of large 64-bit integers."""
    widest = np.complex128 if "c" in (reference.dtype.kind, target.dtype.kind) else np.float64
    wide = [side.astype(widest) for side in (reference, target)]
    compared = _set_aside_nonfinite(tally, wide[0], wide[1], start)
    if compared is not None:
        wide = [np.where(compared, side, 0) for side in wide]
    errors = exact_errors(reference, target) if widest is np.float64 else np.abs(wide[1] - wide[0])
    magnitudes = [np.abs(side) for side in wide]
    largest, relative = float(errors.max()), np.empty_like(errors)
    _add_errors(tally, errors, largest, float(errors.sum()), float(np.vdot(errors, errors)), start, compared)
    _divide(errors, magnitudes[0], relative, float(magnitudes[0].min()))
    tally.add_relative(float(relative.max()), float(relative.sum()))
    one, other = (side.view(np.float64) for side in wide)  # Real and imaginary parts in a row.
    tally.add_products(float(np.vdot(one, one)), float(np.vdot(other, other)), float(np.vdot(one, other)))
    distance = largest if way.ulp is None else ulp.max_distance(wide[0], wide[1], way.ulp)
    tally.add_maxima(float(magnitudes[0].max()), float(magnitudes[1].max()), distance)


def exact_errors(reference: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return absolute errors of two flat real arrays as float64, rounded once: 64-bit integers do not overflow."""
    one, other = _integers(reference), _integers(target)
    if one is None or other is None:
        return np.asarray(np.abs(target.astype(np.float64) - reference.astype(np.float64)))
    if one.dtype != other.dtype:
        return _errors_of_mixed_sign(*sorted((one, other), key=lambda side: side.dtype.kind))
    # Modulo 2**64 the difference larger - smaller is exact, because it is below 2**64.
    difference = np.maximum(one, other).view(np.uint64) - np.minimum(one, other).view(np.uint64)
    return np.asarray(difference, np.float64)


def _integers(values: np.ndarray) -> np.ndarray | None:
    """Return integers and bools as int64 or uint64, None for other types."""
    kind = DType.from_numpy(values.dtype)
    if kind is DType.UINT64:
        return values
    return values.astype(np.int64) if kind.is_integer or kind is DType.BOOL else None


def _errors_of_mixed_sign(signed: np.ndarray, unsigned: np.ndarray) -> np.ndarray:
    """Return absolute errors between an int64 and a uint64 array."""
    nonnegative = np.maximum(signed, 0).astype(np.uint64)
    difference = np.maximum(nonnegative, unsigned) - np.minimum(nonnegative, unsigned)
    # Where the signed side is negative the distance is the sum of the magnitudes, which may need a 65th bit.
    return np.asarray(difference.astype(np.float64) + np.maximum(-signed.astype(np.float64), 0.0))


def _tally_text(tally: Tally, reference: np.ndarray, target: np.ndarray, start: int) -> None:
    """Add a block of strings: the error is 1 where they differ, every string has magnitude 1."""
    errors = text_errors(reference, target)
    different = float(errors.sum())
    _add_errors(tally, errors, float(errors.max()), different, different, start, None)
    tally.add_relative(float(errors.max()), different)
    tally.add_products(errors.size, errors.size, errors.size - different)
    tally.add_maxima(1.0, 1.0, float(errors.max()))


def text_errors(reference: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return 1.0 where two flat arrays of strings differ, else 0.0; bytes are taken as UTF-8."""
    pairs = zip(reference.tolist(), target.tolist(), strict=True)
    return np.array([float(_text(one) != _text(other)) for one, other in pairs])


def in_float(values: np.ndarray) -> np.ndarray:
    """Return a flat array of real numbers in float32 when that holds its type, integers and doubles in float64."""
    kind = DType.from_numpy(values.dtype)
    if not kind.is_float or kind is DType.DOUBLE:
        return values.astype(np.float64)
    return (
        values.astype(np.float32) if kind in (DType.FLOAT, DType.BFLOAT16) else _load(values, _F32, "in_float").copy()
    )


def _text(item: object) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)
