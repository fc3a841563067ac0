"""Everything about one block of a tensor pair, in one visit.

Real numbers are computed in the float type that holds both sides exactly. One look at three maxima tells whether the
block is plain: finite, and far enough from the limits of float32 for squares to be exact enough. If not, the elements
that are not finite are counted and taken out, and what is out of range is computed in float64. Complex numbers, 64-bit
integers and strings are rare and take a way of their own.
"""

import dataclasses
import functools
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
        work: float32 or float64, holding every value of both types exactly; None for the rare types.
        bits: Unsigned integer type to compare the memory of both sides with; None when their types differ.
        ulp: Type whose representable numbers errors are counted in; None for integers, whose unit is 1.
        ulp_shift: Set when the distance in ``ulp`` is the distance of the float32 bits divided by 2 to this power.
        is_text: Whether both are strings.
    """

    work: np.dtype[Any] | None
    bits: np.dtype[Any] | None
    ulp: np.dtype[Any] | None
    ulp_shift: int | None
    is_text: bool = False


@functools.cache
def lane(reference: np.dtype[Any], target: np.dtype[Any]) -> Lane:
    """Return the lane for two native numpy types."""
    kinds = {DType.from_numpy(reference), DType.from_numpy(target)}
    if DType.STRING in kinds:
        return Lane(None, None, None, None, is_text=True)
    wide_integers = kinds & {DType.INT64, DType.UINT64} and not any(kind.is_float for kind in kinds)
    is_complex = any(kind.numpy.kind == "c" for kind in kinds)
    narrow = all(kind is DType.FLOAT or kind.numpy.itemsize <= 2 for kind in kinds)
    work = None if wide_integers or is_complex else _F32 if narrow else _F64
    unit = ulp.coarser(reference, target)
    # A bfloat16 is the upper half of a float32.
    shift = 0 if unit == work else 16 if reference == target == _BF16 else None
    bits = np.dtype(f"u{reference.itemsize}") if reference == target and not is_complex else None
    return Lane(work, bits, unit, shift)


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
    elif way.work is None:
        _tally_rare(tally, way, reference, target, start)
    # Tensors that have begun to differ rarely stop doing so; looking again in each block would be wasted.
    elif way.bits is not None and tally.nonzero_errors == 0 and _same_memory(way.bits, reference, target):
        if not _tally_equal(tally, way.work, reference, start):
            _tally_odd(tally, way, reference, target, start)
    elif not _tally_plain(tally, way, reference, target, start, work=way.work, bounds=_SAFE[way.work]):
        _tally_odd(tally, way, reference, target, start)


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
    positions: np.ndarray | None = None,
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
        positions: Places of the values in the block; None when the block is complete.
    """
    reference = _load(reference_raw, work, "reference")
    target = _load(target_raw, work, "target")
    # Rows of one array, so that one call serves several: threads take turns in Python, so calls are what they wait for.
    stack = SCRATCH.rows("stack", work, 4, reference.size)
    relative, errors, reference_abs, target_abs = stack
    np.subtract(target, reference, out=errors)
    np.abs(errors, out=errors)
    np.abs(reference, out=reference_abs)
    np.abs(target, out=target_abs)
    error_max, reference_max, target_max = stack[1:].max(axis=1).tolist()
    if bounds and not all(_within(largest, bounds) for largest in (error_max, reference_max, target_max)):
        return False
    _divide(errors, reference_abs, relative)
    relative_max = float(relative.max())
    relative_sum, error_sum = blocks.inner_products(stack[:2], blocks.ones(work)).tolist()
    if bounds and not np.isfinite(relative_sum):
        return False
    squares = blocks.inner_products(stack[1:], stack[1:]).tolist()
    tally.add_products(squares[1], squares[2], float(blocks.inner_products(reference, target)))
    if way.ulp is None:
        distance = error_max
    elif way.ulp_shift is None or work != way.work:
        distance = ulp.max_distance(reference_raw, target_raw, way.ulp)
    else:
        distance = _ulp(reference, target, stack, relative_max) / 2.0**way.ulp_shift
    tally.add_maxima(reference_max, target_max, distance)
    tally.add_relative(relative_max, relative_sum)
    _add_errors(tally, errors, error_max, error_sum, squares[0], start, positions)
    return True


def _tally_odd(tally: Tally, way: Lane, reference: np.ndarray, target: np.ndarray, start: int) -> None:
    """Add a block of real numbers that is not plain: not finite, or out of the range of exact squares."""
    assert way.work is not None
    sides = [_load(side, way.work, role) for side, role in ((reference, "reference"), (target, "target"))]
    positions = _set_aside_nonfinite(tally, sides[0], sides[1], start)
    if positions is not None:
        if positions.size == 0:
            return
        reference, target = reference[positions], target[positions]
        bounds = _SAFE[way.work]
        if _tally_plain(tally, way, reference, target, start, work=way.work, bounds=bounds, positions=positions):
            return
    _tally_plain(tally, way, reference, target, start, work=_F64, bounds=None, positions=positions)


def _set_aside_nonfinite(tally: Tally, reference: np.ndarray, target: np.ndarray, start: int) -> np.ndarray | None:
    """Count what is not finite; return the positions that are finite on both sides, None when all are."""
    finite = [np.isfinite(reference), np.isfinite(target)]
    compared = finite[0] & finite[1]
    others = np.flatnonzero(~compared)
    if others.size == 0:
        return None
    # A value that is finite on its own side only belongs to the range of its tensor, though to no error.
    largest = [
        float(np.abs(side).max(where=good, initial=-1.0))
        for side, good in zip((reference, target), finite, strict=True)
    ]
    tally.add_maxima(largest[0], largest[1], 0.0)
    odd_reference, odd_target = reference[others], target[others]
    nan_reference, nan_target = np.isnan(odd_reference), np.isnan(odd_target)
    tally.nan_reference += int(np.count_nonzero(nan_reference))
    tally.nan_target += int(np.count_nonzero(nan_target))
    tally.inf_reference += int(np.count_nonzero(np.isinf(odd_reference)))
    tally.inf_target += int(np.count_nonzero(np.isinf(odd_target)))
    mismatched = others[~((odd_reference == odd_target) | (nan_reference & nan_target))]
    tally.nonfinite_mismatch += mismatched.size
    tally.consider_nonfinite(mismatched, start)
    return np.flatnonzero(compared)


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


def _divide(errors: np.ndarray, reference_abs: np.ndarray, relative: np.ndarray) -> None:
    """Write relative errors into ``relative``."""
    if reference_abs.min() > 0:
        np.divide(errors, reference_abs, out=relative)
        return
    zeros = np.equal(reference_abs, 0, out=SCRATCH.get("mask", _BOOL, errors.size))
    # Adding is exact, either operand being zero, and faster than a masked assignment.
    np.multiply(zeros, errors.dtype.type(ZERO_REFERENCE), out=relative)
    np.add(reference_abs, relative, out=relative)
    np.divide(errors, relative, out=relative)


def _ulp(reference: np.ndarray, target: np.ndarray, stack: np.ndarray, relative_max: float) -> float:
    """Return the largest distance in representable numbers of the work type; ``stack`` as in `_tally_plain`."""
    integer = _INTEGER[reference.dtype]
    relative, _, reference_abs, _ = stack
    magnitudes = stack[2:].view(integer)
    scratch = SCRATCH.rows("integers", integer, 2, reference.size)
    if reference_abs.min() < _SMALLEST_NORMAL[reference.dtype]:
        np.bitwise_xor(reference.view(integer), target.view(integer), out=scratch[0])
        return ulp.distance_of_bits(magnitudes[0], magnitudes[1], scratch[0], scratch[1])
    if relative_max < 0.5:  # Then no sign differs.
        return ulp.distance_of_bits(magnitudes[0], magnitudes[1], None, scratch[1])
    # With p bits of mantissa, an element whose relative error is at least 1/2 is at least 2**p / 3 numbers away, and
    # one below 1/12 less than that. So only few elements can be the farthest.
    found = np.flatnonzero(np.greater_equal(relative, 1 / 12, out=SCRATCH.get("mask", _BOOL, reference.size)))
    if found.size < reference.size // 16:
        return ulp.max_distance(reference[found], target[found], reference.dtype)
    np.bitwise_xor(reference.view(integer), target.view(integer), out=scratch[0])
    return ulp.distance_of_bits(magnitudes[0], magnitudes[1], scratch[0], scratch[1])


def _add_errors(
    tally: Tally,
    errors: np.ndarray,
    largest: float,
    error_sum: float,
    square_sum: float,
    start: int,
    positions: np.ndarray | None = None,
) -> None:
    """Add finite errors and their sums; ``positions`` are their places in the block when it is not complete."""
    unequal = np.not_equal(errors, 0, out=SCRATCH.get("mask", _BOOL, errors.size))
    tally.compared += errors.size
    tally.nonzero_errors += int(np.count_nonzero(unequal))
    tally.error_sum += error_sum
    tally.error_square_sum += square_sum
    tally.error_max = max(tally.error_max, largest)
    tally.consider(errors, largest, start, positions)
    if positions is None:
        tally.samples.append(errors[-start % tally.stride :: tally.stride].copy())
    else:
        tally.samples.append(errors[(positions + start) % tally.stride == 0])


def _tally_rare(tally: Tally, way: Lane, reference: np.ndarray, target: np.ndarray, start: int) -> None:
    """Add a block of complex numbers or of 64-bit integers."""
    widest = np.complex128 if "c" in (reference.dtype.kind, target.dtype.kind) else np.float64
    wide = [side.astype(widest) for side in (reference, target)]
    positions = _set_aside_nonfinite(tally, wide[0], wide[1], start)
    if positions is not None:
        if positions.size == 0:
            return
        reference, target, wide = reference[positions], target[positions], [side[positions] for side in wide]
    errors = exact_errors(reference, target) if widest is np.float64 else np.abs(wide[1] - wide[0])
    magnitudes = [np.abs(side) for side in wide]
    largest = float(errors.max())
    _add_errors(tally, errors, largest, float(errors.sum()), float(np.vdot(errors, errors)), start, positions)
    relative = np.empty_like(errors)
    _divide(errors, magnitudes[0], relative)
    tally.add_relative(float(relative.max()), float(relative.sum()))
    one, other = (side.view(np.float64) for side in wide)  # Real and imaginary parts in a row.
    tally.add_products(float(np.vdot(one, one)), float(np.vdot(other, other)), float(np.vdot(one, other)))
    distance = largest if way.ulp is None else ulp.max_distance(reference, target, way.ulp)
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
    _add_errors(tally, errors, float(errors.max()), different, different, start)
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
