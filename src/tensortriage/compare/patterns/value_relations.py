"""The target as a function of the reference: scaled, shifted in value, negated, clipped, zeroed, constant, normalised.

Each candidate function has a parameter or two, fitted to the pair; it is believed when the remaining error is below a
tenth, and when so good a fit would not be luck with so few elements.
"""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from tensortriage.compare.patterns.error_places import FEWEST_ALIKE
from tensortriage.compare.patterns.error_view import Specimen
from tensortriage.compare.patterns.finding import PATTERN_SHARE, PatternFinding, energy
from tensortriage.values.dtype import DType
from tensortriage.values.text import magnitude, percent

_SIMPLER_BY = 4.0
"""A fit with fewer parameters is preferred while it leaves at most so many times as much."""

_NO_VARIATION, _VARIATION = 1e-4, 1e-2
"""Shares of the energy that are variation: below the first there is none but rounding, above the second there is."""

_EQUAL_SUMS = 0.02
"""Spread up to which sums along an axis are equal, as a Softmax's in bf16 are; five times as wide they are not."""

_SIGN_FLIPPED = 0.01
"""How far a factor may be from -1 for the sign alone to be flipped: rounding to bf16 makes 0.4 %."""

_CHANGED_SLICE = 0.05
"""Share of the largest change from which a slice counts as changed; when most are changed, only their place matters."""

_SLICES_OVER_FLOOR = 2.0
"""Factors of slices differ from 1 where one is so many floors away from it."""

_CLIPPED_FROM = 0.25
"""Least excess over the bound, as a share of the largest: clipped elements exceed it by any amount from zero on, a
rounded constant by one amount."""

_LIMITS = {
    float(kind.finfo.max): f"the largest {kind.label} number"
    for kind in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8E4M3FN, DType.FLOAT8E5M2)
} | {127.0: "the largest int8 number", 255.0: "the largest uint8 number", 32767.0: "the largest int16 number",
     65535.0: "the largest uint16 number", 2147483647.0: "the largest int32 number"}  # fmt: skip


def constant(specimen: Specimen) -> PatternFinding | None:
    """Does the target have one value, altogether or along an axis, where the reference varies?"""
    target, reference = specimen.target, specimen.reference
    if not specimen.all_finite or target.size < 2:
        return None
    if np.ptp(target) == 0.0 < np.ptp(reference) or _lost_variation(reference, target, None):
        value = float(target.mean())
        return PatternFinding("constant", f"the target is {magnitude(value, 4)} everywhere", 1.0, {"value": value})
    for axis, size in enumerate(specimen.shape):
        if size > 1 and _lost_variation(reference, target, axis):
            sentence = f"the target does not vary along axis {axis}, the reference does"
            return PatternFinding("constant", sentence, 1.0, {"axis": axis})
    return None


def _lost_variation(reference: np.ndarray, target: np.ndarray, axis: int | None) -> bool:
    """Return whether the target alone has no variation beyond rounding along an axis (None: at all)."""
    with np.errstate(all="ignore"):
        ours, theirs = ((energy(x - x.mean(axis=axis, keepdims=True)), energy(x)) for x in (reference, target))
    return theirs[0] < _NO_VARIATION * theirs[1] and ours[0] > _VARIATION * ours[1]


def zeroed(specimen: Specimen) -> tuple[PatternFinding, np.ndarray] | None:
    """Is the target zero where the reference is not? Returns the finding and the elements."""
    zeros = (specimen.target == 0.0) & (specimen.reference != 0.0) & specimen.finite
    count = int(np.count_nonzero(zeros))
    if not count or not specimen.error_energy > 0.0:
        return None
    share = energy(specimen.error[zeros]) / specimen.error_energy
    if not share >= PATTERN_SHARE:
        return None
    known = int(np.count_nonzero(specimen.reference != 0.0))
    sizes = np.abs(specimen.reference)
    largest, others = float(sizes[zeros].max()), sizes[(specimen.target != 0.0) & (specimen.reference != 0.0)]
    facts = {"zeros": count, "share": count / specimen.target.size, "largest_lost": largest}
    if count == known:
        return PatternFinding("zeros", "the target is zero everywhere", share, facts), zeros
    if others.size and count >= FEWEST_ALIKE and largest < float(others.min()):
        sentence = f"magnitudes up to {magnitude(largest, 4)} have become zero, larger ones have not: flushed to zero"
    else:
        sentence = f"{percent(count / known)} of the reference's non-zero elements are zero in the target"
    return PatternFinding("zeros", f"{sentence}; they hold {percent(share)} of the error", share, facts), zeros


def linear(specimen: Specimen, where: np.ndarray | None = None) -> PatternFinding | None:
    """Is ``target = factor * reference + offset``, in all elements or in some?

    Args:
        specimen: The pair.
        where: The examined elements, a mask in the shape of the box; None for all.
    """
    chosen = specimen.finite if where is None else specimen.finite & where
    reference, target = specimen.reference[chosen], specimen.target[chosen]
    best: tuple[float, float, float] | None = None
    left = math.inf
    for factor, offset, parameters in _fits(reference, target):
        share = specimen.support(factor * specimen.reference + offset, parameters=parameters, where=where)
        # What is small against an error may still be all there is of a small target.
        predicts = energy(target - factor * reference - offset) < (1.0 - PATTERN_SHARE) * energy(target)
        if share and predicts and _SIMPLER_BY * (1.0 - share) < left:
            best, left = (factor, offset, share), 1.0 - share
    if best is None:
        return None
    factor, offset, share = best
    level = max(2.0 * specimen.floor, 4.0 * specimen.epsilon)
    if abs(factor - 1.0) <= level and abs(offset) <= level * specimen.rms:
        return None
    place = "" if where is None else "in the wrong elements "
    if specimen.whole_target.dtype == np.bool_ and factor < 0.0:
        return PatternFinding("sign", f"{place}true and false are exchanged", share, {"explained": share})
    return _linear_finding(factor, offset, share, place)


def _fits(reference: np.ndarray, target: np.ndarray) -> Iterator[tuple[float, float, int]]:
    """Yield (factor, offset, parameters) of least-squares fits, the simplest first."""
    with np.errstate(all="ignore"):
        square = energy(reference)
        if reference.size < FEWEST_ALIKE or not 0.0 < square < math.inf:
            return
        yield float(np.dot(reference, target)) / square, 0.0, 1
        mean, offset = float(reference.mean()), float((target - reference).mean())
        yield 1.0, offset, 1
        spread = energy(reference - mean)
        if spread > 1e-12 * square:
            slope = float(np.dot(reference - mean, target)) / spread
            yield slope, float(target.mean()) - slope * mean, 2


def _linear_finding(factor: float, offset: float, share: float, where: str) -> PatternFinding:
    facts = {"factor": factor, "offset": offset, "explained": share}
    times = f"{magnitude(factor, 4)} times" if abs(factor - 1.0) > 1e-3 else f"(1 {factor - 1.0:+.2g}) times"
    if offset == 0.0 and abs(factor + 1.0) < _SIGN_FLIPPED:
        return PatternFinding("sign", f"{where}the sign is flipped", share, facts)
    if offset == 0.0:
        power = math.log2(abs(factor)) if factor else 0.0
        hint = f" (2**{round(power)})" if round(power) and abs(power - round(power)) < 1e-3 else ""
        return PatternFinding("scale", f"{where}the target is {times} the reference{hint}", share, facts)
    if factor == 1.0:
        return PatternFinding("offset", f"{where}the target is the reference {offset:+.4g}", share, facts)
    sentence = f"{where}the target is {times} the reference {offset:+.4g}"
    return PatternFinding("scale", sentence, share, facts)


def scaled_slices(specimen: Specimen) -> PatternFinding | None:
    """Has every index of an axis, or every row along the last one, a factor (or an offset) of its own?"""
    rank = len(specimen.shape)
    ways: list[tuple[tuple[int, ...], str]] = [((axis,), f"index of axis {axis}") for axis in range(rank)]
    ways += [(tuple(range(rank - 1)), f"row along axis {rank - 1}")] if rank > 2 else []
    counts = [math.prod(specimen.shape[axis] for axis in kept) for kept, _ in ways]
    best: PatternFinding | None = None
    left = math.inf
    for count, (kept, words) in sorted(zip(counts, ways, strict=True)):
        if not 2 <= count <= specimen.reference.size // 16:
            continue
        for finding in (_slice_factors(specimen, kept, words), _slice_offsets(specimen, kept, words)):
            if finding and _SIMPLER_BY * (1.0 - finding.strength) < left:
                best, left = finding, 1.0 - finding.strength
    return best


def _slice_factors(specimen: Specimen, kept: tuple[int, ...], words: str) -> PatternFinding | None:
    reference, target = (np.where(specimen.finite, side, 0.0) for side in (specimen.reference, specimen.target))
    others = tuple(axis for axis in range(reference.ndim) if axis not in kept)
    with np.errstate(all="ignore"):
        square = np.sum(reference * reference, axis=others, keepdims=True)
        factors = np.where(square > 0.0, np.sum(reference * target, axis=others, keepdims=True) / square, 1.0)
        share = specimen.support(factors * specimen.reference, parameters=factors.size)
        if not share or energy(target - factors * reference) > (1.0 - PATTERN_SHARE) * energy(target):
            return None
    low, high = float(factors.min()), float(factors.max())
    if not _is_common(factors - 1.0) or max(abs(low - 1.0), abs(high - 1.0)) <= _SLICES_OVER_FLOOR * specimen.floor:
        return None
    sentence = f"every {words} has a factor of its own, from {magnitude(low, 4)} to {magnitude(high, 4)}"
    return PatternFinding("slice-scale", sentence, share, {"axes": list(kept), "lowest": low, "highest": high})


def _slice_offsets(specimen: Specimen, kept: tuple[int, ...], words: str) -> PatternFinding | None:
    others = tuple(axis for axis in range(specimen.error.ndim) if axis not in kept)
    with np.errstate(all="ignore"):
        offsets = specimen.error.mean(axis=others, keepdims=True)
        share = specimen.support(specimen.reference + offsets, parameters=offsets.size)
    if not share or not _is_common(offsets):
        return None
    low, high = float(offsets.min()), float(offsets.max())
    sentence = f"every {words} has an offset of its own, from {magnitude(low, 4)} to {magnitude(high, 4)}"
    return PatternFinding("slice-offset", sentence, share, {"axes": list(kept), "lowest": low, "highest": high})


def _is_common(changes: np.ndarray) -> bool:
    """Return whether most slices are changed; when few are, it is the place that is peculiar (`places`)."""
    return bool(np.mean(np.abs(changes) > _CHANGED_SLICE * np.abs(changes).max()) > 0.5)


def folded(specimen: Specimen) -> PatternFinding | None:
    """Are negative numbers made positive (or positive ones negative)?"""
    for sign, words in (
        (1.0, "negative numbers have become positive"),
        (-1.0, "positive numbers have become negative"),
    ):
        folds = sign * specimen.reference < 0.0
        share = specimen.support(-specimen.reference, where=folds)
        count = int(np.count_nonzero(folds))
        if share >= PATTERN_SHARE and count >= FEWEST_ALIKE:
            return PatternFinding("sign", words, share, {"explained": share, "elements": count})
    return None


def saturated(specimen: Specimen) -> PatternFinding | None:
    """Is the target the reference clipped to the target's own smallest and largest value?"""
    finite = specimen.finite
    if not finite.any():
        return None
    low, high = float(specimen.target[finite].min()), float(specimen.target[finite].max())
    above, below = ((specimen.reference > high) & finite, (specimen.reference < low) & finite)
    share = specimen.support(np.clip(specimen.reference, low, high), where=above | below)
    beyond = [int(np.count_nonzero(side)) for side in (above, below)]
    cut = specimen.reference[above | below]
    excess = np.abs(cut - np.clip(cut, low, high))
    if (
        share < PATTERN_SHARE
        or np.unique(cut).size < FEWEST_ALIKE
        or float(excess.min()) > _CLIPPED_FROM * float(excess.max())
    ):
        return None
    bounds = [(high, "above"), (low, "below")]
    parts = [
        f"{magnitude(bound, 4)} for all that lies {side} it"
        for (bound, side), n in zip(bounds, beyond, strict=True)
        if n
    ]
    if all(beyond) and abs(high + low) <= 1e-3 * abs(high):
        parts = [f"{magnitude(high, 4)} in magnitude for all that lies beyond"]
    bound = high if beyond[0] else low
    hint = f" ({_LIMITS[abs(bound)]})" if abs(bound) in _LIMITS else ""
    facts = {"low": low, "high": high, "above": beyond[0], "below": beyond[1], "explained": share}
    return PatternFinding("saturation", f"the target saturates: it is {' and '.join(parts)}{hint}", share, facts)


def normalised_elsewhere(specimen: Specimen) -> PatternFinding | None:
    """Has the reference equal sums (of values, exponentials or squares) along one axis, the target along another?"""
    axes = [axis for axis, size in enumerate(specimen.shape) if size > 1 and specimen.is_whole(axis)]
    if len(axes) < 2 or not specimen.all_finite:
        return None
    sums: list[tuple[str, Callable[[np.ndarray], np.ndarray]]] = [
        ("sums", lambda x: x),
        ("sums of exponentials", np.exp),
        ("sums of squares", np.square),
    ]
    for words, change in sums:
        with np.errstate(all="ignore"):
            ours, theirs = change(specimen.reference), change(specimen.target)
            spreads = {axis: (_spread(ours, axis), _spread(theirs, axis)) for axis in axes}
        for right, wrong_axis in itertools.permutations(axes, 2):
            lost = spreads[right][0] < _EQUAL_SUMS and spreads[right][1] > 5 * _EQUAL_SUMS
            if lost and spreads[wrong_axis][1] < _EQUAL_SUMS and spreads[wrong_axis][0] > 5 * _EQUAL_SUMS:
                sentence = (
                    f"the {words} along axis {right} are equal in the reference, those along axis {wrong_axis} in the "
                    "target: normalised along the wrong axis"
                )
                return PatternFinding(
                    "wrong-axis", sentence, 1.0, {"right_axis": right, "axis_taken": wrong_axis, "of": words}
                )
    return None


def _spread(array: np.ndarray, axis: int) -> float:
    """Return the relative spread of the sums along an axis; inf where they carry no information."""
    sums = array.sum(axis=axis).reshape(-1)
    mean = float(np.mean(np.abs(sums)))
    if sums.size < 4 or not 0.0 < mean < math.inf or array.min() < 0.0:
        return math.inf
    return float(np.max(np.abs(sums - np.mean(sums)))) / mean
