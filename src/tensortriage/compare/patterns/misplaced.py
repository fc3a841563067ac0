"""Right numbers in wrong places: is the target the reference with its elements moved?

Every way of moving is a map from places of the target to places of the reference. It is tried on a few thousand places,
and believed when the error that is left is below a tenth: so it is recognised under the rounding of any format, and
rounding alone, which no movement explains, never looks like one.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.patterns.error_view import Specimen, same_box
from tensortriage.compare.patterns.finding import LOG10_LUCK, PatternFinding, counted, energy, support

_PLACES = 16384
_FIRST_PLACES = 1024
_LONGEST_SHIFT = 8
_MOST_AXES_PERMUTED = 5
_LAYOUTS = {(0, 2, 3, 1): "NHWC data read as NCHW", (0, 3, 1, 2): "NCHW data read as NHWC"}


def stale(specimen: Specimen, others: Mapping[str, np.ndarray]) -> PatternFinding | None:
    """Does the target hold another tensor, in all of its elements or in the wrong ones?

    Args:
        specimen: The pair.
        others: Other tensors of the model by name, as the reference has them.
    """
    best, best_share = "", 0.0
    mask = specimen.wrong if specimen.wrong.any() else None
    for name, other in others.items():
        if other.shape == specimen.whole_reference.shape and other.dtype.kind not in "USOc":
            share = specimen.support(same_box(specimen, other), where=mask)
            if share > best_share:
                best, best_share = name, share
    if not best:
        return None
    which = "the target equals" if mask is None or mask.all() else "the wrong elements equal"
    sentence = f"{which} tensor '{best}': a stale or wrong buffer, or an op that did nothing"
    return PatternFinding("stale", sentence, best_share, {"tensor": best, "explained": best_share})


@dataclasses.dataclass(frozen=True)
class Probe:
    """Some places of a pair of whole tensors, the largest errors among them.

    Attributes:
        shape: Shape of the tensors.
        places: Flat indices, int64.
        reference: The whole reference.
        target: The target's values at the places, float64.
        error: Target minus reference there.
    """

    shape: tuple[int, ...]
    places: np.ndarray
    reference: np.ndarray
    target: np.ndarray
    error: np.ndarray

    @classmethod
    def of(cls, specimen: Specimen) -> "Probe":
        """Choose places in random order; all when there are few."""
        whole = specimen.whole_reference
        rng = np.random.default_rng(0)
        if whole.size <= _PLACES:
            places = rng.permutation(whole.size)
        else:
            flat = np.abs(specimen.error).reshape(-1)
            worst = np.argpartition(flat, -min(flat.size, _PLACES // 4))[-_PLACES // 4 :]
            coordinates = np.unravel_index(worst, specimen.shape)
            chosen = [indices[along] for indices, along in zip(specimen.indices, coordinates, strict=True)]
            extremes = np.ravel_multi_index(chosen, whole.shape)
            places = rng.permutation(np.unique(np.concatenate([rng.integers(0, whole.size, _PLACES), extremes])))
        target, reference = at(specimen.whole_target, places), at(whole, places)
        usable = np.isfinite(target) & np.isfinite(reference)
        places, target, reference = places[usable], target[usable], reference[usable]
        return cls(whole.shape, places, whole, target, target - reference)

    def support(self, sources: np.ndarray, valid: np.ndarray | None = None) -> float:
        """Return the share of the squared error that is gone when every place is compared with its source.

        Args:
            sources: Flat indices into the reference, one per place.
            valid: Which places count; None for all.

        Returns:
            0 when the movement is not convincing (`finding.support`).
        """
        with np.errstate(all="ignore"):
            rest = np.nan_to_num(self.target - at(self.reference, sources), nan=math.inf)
        chosen = slice(None) if valid is None else valid
        error, target = self.error[chosen], self.target[chosen]
        return support(error, rest[chosen]) if self._is_no_luck(target[error != 0.0]) else 0.0

    def _is_no_luck(self, values: np.ndarray) -> bool:
        """Return whether values are found in their places by more than chance: those that repeat are found in many."""
        right = np.sort(at(self.reference, self.places))
        often = np.searchsorted(right, values, "right") - np.searchsorted(right, values)
        return bool(np.sum(np.where(often > 1, np.log10(np.maximum(often, 1) / right.size), LOG10_LUCK)) <= LOG10_LUCK)

    def first(self) -> "Probe":
        """Return the first places only, for a quick look."""
        places = slice(_FIRST_PLACES)
        return Probe(self.shape, self.places[places], self.reference, self.target[places], self.error[places])


def at(array: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return elements at flat indices in float64; of a tensor in any layout, without copying it.

    Args:
        array: Array of any shape and real type.
        places: Flat indices in C order, int64.
    """
    picked = array.reshape(-1)[places] if array.flags.c_contiguous else array[np.unravel_index(places, array.shape)]
    with np.errstate(invalid="ignore"):  # of signalling NaN
        return np.asarray(picked.astype(np.float64))


def shifted(probe: Probe) -> PatternFinding | None:
    """Does every element hold a neighbour's value, along an axis or in memory?"""
    quick = probe.first()
    best: PatternFinding | None = None
    for axis in [*range(len(probe.shape)), None] if len(probe.shape) > 1 else range(len(probe.shape)):
        length = probe.reference.size if axis is None else probe.shape[axis]
        steps = [sign * step for step in range(1, min(_LONGEST_SHIFT, length // 2) + 1) for sign in (1, -1)]
        for step in steps:
            if not quick.support(*_shift_sources(quick, axis, step)):
                continue
            sources, inside = _shift_sources(probe, axis, step)
            around, within = probe.support(sources), probe.support(sources, inside)
            within *= energy(probe.error[inside]) / energy(probe.error)
            if max(around, within) > (best.strength if best else 0.0):
                best = _shift_finding(axis, step, max(around, within), wraps=around >= within)
    return best


def _shift_sources(probe: Probe, axis: int | None, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the source of every place, and where it lies within the tensor (elsewhere it is wrapped around)."""
    if axis is None:
        sources = probe.places - step
        return sources % probe.reference.size, (sources >= 0) & (sources < probe.reference.size)
    stride, length = math.prod(probe.shape[axis + 1 :]), probe.shape[axis]
    index = probe.places // stride % length
    inside = (index >= step) & (index < length + step)
    return probe.places + ((index - step) % length - index) * stride, inside


def _shift_finding(axis: int | None, step: int, share: float, *, wraps: bool) -> PatternFinding:
    where = "in memory, across rows" if axis is None else f"along axis {axis}"
    around = ", wrapping around" if wraps else ""
    neighbour = "before" if step > 0 else "after"
    sentence = (
        f"every element holds the value that belongs {counted(abs(step), 'place')} {neighbour} it {where}{around}: "
        "an index is off by " + ("one" if abs(step) == 1 else str(abs(step)))
    )
    return PatternFinding("shift", sentence, share, {"axis": axis, "step": step, "wraps": wraps, "explained": share})


def reversed_order(probe: Probe) -> PatternFinding | None:
    """Is the order of the elements along an axis reversed?"""
    for axis, length in enumerate(probe.shape):
        stride = math.prod(probe.shape[axis + 1 :])
        index = probe.places // stride % length
        if share := probe.support(probe.places + (length - 1 - 2 * index) * stride) if length > 1 else 0.0:
            facts = {"axis": axis, "reversed": True, "explained": share}
            return PatternFinding("reordering", reversed_along(axis), share, facts)
    return None


def reversed_along(axis: int) -> str:
    """Return in words that the order along an axis is reversed."""
    return f"axis {axis} is in reverse order"


def swapped(one: int, other: int) -> str:
    """Return in words that two axes are exchanged."""
    return f"axes {one} and {other} are swapped"


def transposed(probe: Probe) -> PatternFinding | None:
    """Does the target hold the reference with its axes in another order, under the same shape?"""
    quick, best_share = probe.first(), 0.0
    best: tuple[tuple[int, ...], bool] | None = None
    for axes in axis_orders(probe.shape):
        same_shape = tuple(probe.shape[axis] for axis in axes) == probe.shape
        for read_back in (False,) if same_shape else (False, True):
            if quick.support(_transposed_sources(quick, axes, read_back)):
                share = probe.support(_transposed_sources(probe, axes, read_back))
                if share > best_share:
                    best, best_share = (axes, read_back), share
    if best is None:
        return None
    axes, read_back = best
    facts = {"axes": list(axes), "explained": best_share}
    if tuple(probe.shape[axis] for axis in axes) == probe.shape:
        moved = sorted(axis for place, axis in enumerate(axes) if place != axis)
        how = swapped(*moved) if len(moved) == 2 else f"axes are in the order {axes}"
        return PatternFinding("transposition", f"the target is the reference transposed: {how}", best_share, facts)
    seen = inverse(axes) if read_back else axes
    hint = f" ({_LAYOUTS[seen]})" if seen in _LAYOUTS else ""
    how = f"in the memory order of axes {seen}, under the shape of the original{hint}"
    return PatternFinding("layout", f"the target holds the reference's values {how}", best_share, facts)


def axis_orders(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the orders of axes that move elements: all for few axes, else swaps of two and moves of one."""
    rank, long = len(shape), [axis for axis, size in enumerate(shape) if size > 1]
    if len(long) <= _MOST_AXES_PERMUTED:
        orders: Iterator[tuple[int, ...]] = itertools.permutations(long)
    else:
        orders = (_exchanged(long, *pair) for pair in itertools.combinations(range(len(long)), 2))
        orders = itertools.chain(orders, (_moved(long, *pair) for pair in itertools.permutations(range(len(long)), 2)))
    for order in orders:
        if list(order) != long:
            by_place = dict(zip(long, order, strict=True))
            yield tuple(by_place.get(axis, axis) for axis in range(rank))


def _exchanged(axes: Sequence[int], one: int, other: int) -> tuple[int, ...]:
    order = list(axes)
    order[one], order[other] = order[other], order[one]
    return tuple(order)


def _moved(axes: Sequence[int], origin: int, destination: int) -> tuple[int, ...]:
    order = [axis for place, axis in enumerate(axes) if place != origin]
    order.insert(destination, axes[origin])
    return tuple(order)


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """Return the order of axes that undoes another."""
    return tuple(sorted(range(len(axes)), key=lambda place: axes[place]))


def _transposed_sources(probe: Probe, axes: tuple[int, ...], read_back: bool) -> np.ndarray:
    """Return the sources for ``reference.transpose(axes)`` in memory order, or for the way back from that."""
    permuted = tuple(probe.shape[axis] for axis in axes)
    if read_back:
        indices = np.unravel_index(probe.places, probe.shape)
        return np.ravel_multi_index([indices[axis] for axis in axes], permuted)
    indices = np.unravel_index(probe.places, permuted)
    return np.ravel_multi_index([indices[place] for place in inverse(axes)], probe.shape)
