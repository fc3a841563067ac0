"""Right slices or numbers in another order: are those of the target the reference's, sorted otherwise?

Unlike the movements of `misplaced`, no map is known before: each slice is compared with all of the reference's, by
projections, and numbers are compared when both sides are sorted.
"""

import math

import numpy as np

from tensortriage.compare.metrics import ulp
from tensortriage.compare.metrics.random_projection import project_rows
from tensortriage.compare.patterns.error_view import Specimen
from tensortriage.compare.patterns.finding import LOG10_LUCK, PatternFinding, counted, energy, listed
from tensortriage.values.text import percent

_SAME_NUMBERS = 0.999
"""Share of sorted numbers that must be equal for rows to hold the same ones."""

_SURELY_MOVED = 0.95
"""Share of the squared error of a slice, and of the tensor, that is gone when moved slices are compared with those that
they are copies of; projections of slices, not elements, are compared."""

_MOST_SLICES = 2048
_SMALLEST_SLICE = 8
_PROJECTIONS = 16
_MOST_SORTED = 1 << 24


def reordered(specimen: Specimen) -> PatternFinding | None:
    """Are whole slices of an axis in another order, reversed, interleaved or repeated?"""
    best: PatternFinding | None = None
    for axis, size in enumerate(specimen.shape):
        wide = 2 <= size <= _MOST_SLICES and specimen.reference.size // size >= _SMALLEST_SLICE
        if wide and specimen.is_whole(axis) and (found := _reordered_along(specimen, axis)):
            best = found if best is None or found.strength > best.strength else best
    return best


def _reordered_along(specimen: Specimen, axis: int) -> PatternFinding | None:
    sides = (specimen.reference, specimen.target)
    ours, theirs = (_slices(np.where(specimen.finite, side, 0.0), axis) for side in sides)
    size = ours.shape[0]
    square = (energy_rows(ours)[None, :] + energy_rows(theirs)[:, None]) - 2.0 * theirs @ ours.T
    square = np.maximum(square, 1e-14 * (energy(ours) + energy(theirs)) / size)
    own, sources = square.diagonal(), square.argmin(axis=1)
    total = float(own.sum())
    moved = (sources != np.arange(size)) & (square[np.arange(size), sources] < (1.0 - _SURELY_MOVED) * own)
    sources = np.where(moved, sources, np.arange(size))
    share = 1.0 - float(square[np.arange(size), sources].sum()) / total if total > 0.0 else 0.0
    if share < _SURELY_MOVED or not math.isfinite(share) or np.count_nonzero(moved) < 1:
        return None
    facts = {"axis": axis, "explained": share, "sources": sources[:64].tolist()}
    repeated = [int(index) for index in np.flatnonzero(moved) if np.count_nonzero(sources == sources[index]) > 1]
    if 2 * len(repeated) > np.count_nonzero(moved):
        origin = sorted({int(sources[index]) for index in repeated})
        sentence = f"axis {axis} has repeated slices: {listed(repeated, size)} hold copies of "
        return PatternFinding("duplicate", sentence + listed(origin, size), share, facts)
    return PatternFinding("reordering", f"slices of axis {axis} are {order_words(sources)}", share, facts)


def _slices(array: np.ndarray, axis: int) -> np.ndarray:
    return project_rows(np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1), _PROJECTIONS)


def energy_rows(rows: np.ndarray) -> np.ndarray:
    """Return the sum of squares of every row.

    Args:
        rows: ``[row, element]``, floating point.

    Returns:
        ``[row]``, in the same type.
    """
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def order_words(sources: np.ndarray) -> str:
    """Return in what order slices are, from the index of the right slice that each holds, int64."""
    size = sources.size
    places = np.arange(size)
    moved = np.flatnonzero(sources != places)
    steps = np.unique((places - sources)[moved] % size)
    if steps.size == 1:
        step = int(steps[0]) if 2 * int(steps[0]) <= size else int(steps[0]) - size
        if moved.size == size:
            return f"rotated by {step}"
        which = listed(moved.tolist(), size)
        return (
            f"shifted: {which} hold what belongs {counted(abs(step), 'place')} {'before' if step > 0 else 'after'} them"
        )
    for groups in range(2, size // 2 + 1):
        if size % groups == 0 and np.array_equal(sources, places.reshape(groups, -1).T.reshape(-1)):
            return f"interleaved: {groups} groups of {size // groups} that should follow one another alternate"
    shown = [f"{int(place)} holds {int(sources[place])}" for place in moved[:4]]
    return "in another order: " + ", ".join(shown) + (", ..." if moved.size > 4 else "")


def permuted(specimen: Specimen) -> PatternFinding | None:
    """Are the values the same, only in another order (equal when both are sorted)?"""
    ours, theirs = specimen.whole_reference, specimen.whole_target
    if not 16 <= ours.size <= _MOST_SORTED or not specimen.all_finite:
        return None
    ours, theirs = _comparable(ours, theirs)
    if not _surprising(ours, theirs) or not _same_sorted(ours.reshape(1, -1), theirs.reshape(1, -1)):
        return None
    within = ""
    for depth in range(ours.ndim - 1, 0, -1):
        count = math.prod(ours.shape[:depth])
        if count < ours.size and _same_sorted(ours.reshape(count, -1), theirs.reshape(count, -1)):
            within = f" within each index of {'axis 0' if depth == 1 else f'axes 0..{depth - 1}'}"
            break
    moved = float(np.count_nonzero(ours != theirs)) / ours.size
    sentence = f"the target holds the right values in wrong places{within}: equal once sorted, {percent(moved)} moved"
    return PatternFinding("permutation", sentence, _SURELY_MOVED, {"moved": moved})


def _comparable(ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both sides in a type that sorts fast, floats after rounding to the coarser format."""
    coarse = ulp.coarser(ours.dtype, theirs.dtype)
    if coarse is None:
        same = ours.dtype == theirs.dtype and ours.dtype.kind in "iu"
        return (ours, theirs) if same else (ours.astype(np.float64), theirs.astype(np.float64))
    wide = np.dtype(np.float32) if coarse.itemsize < 4 else coarse
    with np.errstate(all="ignore"):
        one, other = (side.astype(np.float64).astype(coarse).astype(wide) for side in (ours, theirs))
    return one, other


def _surprising(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Return whether equal sorted values would be no coincidence: of few distinct values, counts are easily equal."""
    unequal = ours != theirs
    count = int(np.count_nonzero(unequal))
    if count < 2:
        return False
    distinct = np.unique(theirs[unequal][: 1 << 16]).size
    return 0.5 * distinct * math.log10(1.0 + count / distinct) > -LOG10_LUCK


def _same_sorted(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return bool(np.mean(np.sort(ours, axis=1) == np.sort(theirs, axis=1)) > _SAME_NUMBERS)
