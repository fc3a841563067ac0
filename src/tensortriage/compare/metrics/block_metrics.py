"""Everything about one block of a tensor pair, in one visit.

Real numbers are computed in the float type that holds both sides exactly. One look at three maxima decides whether the
block is plain: finite, and far enough from the limits of float32 for squares to be exact enough. If not, non-finite
elements are counted and cleared, and elements out of range are computed in float64. Complex numbers, large 64-bit
integers and strings are rare and are computed separately.
"""

import numpy as np

from tensortriage.compare.metrics import finite_block, ulp
from tensortriage.compare.metrics.block_totals import BlockTotals
from tensortriage.compare.metrics.blocks import SCRATCH
from tensortriage.compare.metrics.dtype_pairs import F64, SAFE, Lane, load
from tensortriage.values.dtype import DType


def tally_block(tally: BlockTotals, way: Lane, reference: np.ndarray, target: np.ndarray, start: int) -> None:
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
    elif way.bits is not None and tally.nonzero_errors == 0 and finite_block.same_memory(way.bits, reference, target):
        if not finite_block.tally_equal(tally, way, reference, start):
            _tally_hard(tally, way, reference, target, start)
    elif not finite_block.tally_plain(tally, way, (reference, target), start, (way.work, way.bounds)):
        _tally_hard(tally, way, reference, target, start)


def _tally_hard(tally: BlockTotals, way: Lane, reference: np.ndarray, target: np.ndarray, start: int) -> None:
    """Add a block that is not plain."""
    if way.is_wide_integer:
        _tally_rare(tally, way, reference, target, start)
    else:
        _tally_odd(tally, way, reference, target, start)


def _tally_odd(tally: BlockTotals, way: Lane, reference: np.ndarray, target: np.ndarray, start: int) -> None:
    """Add a block of real numbers that is not plain: not finite, or out of the range of exact squares."""
    assert way.work is not None
    sides = load(reference, way.work, "reference"), load(target, way.work, "target")
    compared = _set_aside_nonfinite(tally, *sides, start)
    if compared is not None:
        if not compared.any():
            return
        # In the work type, because a stored type may lack a zero (float8_e8m0fnu).
        reference, target = _cleared(sides[0], compared, "one"), _cleared(sides[1], compared, "other")
    bounds = SAFE[way.work]
    was_tried = compared is None and way.bounds == bounds
    if not was_tried and finite_block.tally_plain(tally, way, (reference, target), start, (way.work, bounds), compared):
        return
    finite_block.tally_plain(tally, way, (reference, target), start, (F64, None), compared)


def _set_aside_nonfinite(
    tally: BlockTotals, reference: np.ndarray, target: np.ndarray, start: int
) -> np.ndarray | None:
    """Count non-finite elements; return a mask of elements finite on both sides, None when all are."""
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


def _tally_rare(tally: BlockTotals, way: Lane, reference: np.ndarray, target: np.ndarray, start: int) -> None:
    """Add a block of complex numbers or of large 64-bit integers."""
    widest = np.complex128 if "c" in (reference.dtype.kind, target.dtype.kind) else np.float64
    wide = [side.astype(widest) for side in (reference, target)]
    compared = _set_aside_nonfinite(tally, wide[0], wide[1], start)
    if compared is not None:
        wide = [np.where(compared, side, 0) for side in wide]
    errors = exact_errors(reference, target) if widest is np.float64 else np.abs(wide[1] - wide[0])
    magnitudes = [np.abs(side) for side in wide]
    largest, relative = float(errors.max()), np.empty_like(errors)
    finite_block.add_errors(
        tally, errors, (largest, float(errors.sum()), float(np.vdot(errors, errors))), start, compared
    )
    finite_block.divide(errors, magnitudes[0], relative)
    tally.add_relative(float(relative.max()), float(relative.sum()))
    one, other = (side.view(np.float64) for side in wide)  # Real and imaginary parts in a row.
    tally.add_products(float(np.vdot(one, one)), float(np.vdot(other, other)), float(np.vdot(one, other)))
    distance = largest if way.ulp is None else ulp.max_distance(wide[0], wide[1], way.ulp)
    tally.add_maxima(float(magnitudes[0].max()), float(magnitudes[1].max()), distance)


def exact_errors(reference: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return absolute errors of two flat real arrays as float64, rounded once: 64-bit integers do not overflow.

    Args:
        reference: Flat; any real type of numpy's or ml_dtypes.
        target: As many elements, of whatever real type.
    """
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


def _tally_text(tally: BlockTotals, reference: np.ndarray, target: np.ndarray, start: int) -> None:
    """Add a block of strings: the error is 1 where they differ, every string has magnitude 1."""
    errors = text_errors(reference, target)
    different = float(errors.sum())
    finite_block.add_errors(tally, errors, (float(errors.max()), different, different), start, None)
    tally.add_relative(float(errors.max()), different)
    tally.add_products(errors.size, errors.size, errors.size - different)
    tally.add_maxima(1.0, 1.0, float(errors.max()))


def text_errors(reference: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return 1.0 where two flat arrays of strings differ, else 0.0; bytes are read as UTF-8.

    Args:
        reference: Flat, of str or bytes.
        target: As many elements.

    Returns:
        Flat, float64.
    """
    pairs = zip(reference.tolist(), target.tolist(), strict=True)
    return np.array([float(_text(one) != _text(other)) for one, other in pairs])


def _text(item: object) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)
