"""Where the wrong elements are: in few indices of an axis, in its tail, at the border, in every n-th index, anywhere.

Of elements that are NaN or Inf in the target only, the reference there is looked at as well.

A place is reported only when so many wrong elements would not have fallen there by chance: less than once in a million
tensors whose wrong elements are scattered at random.
"""

import math
from collections.abc import Sequence

import numpy as np

from tensortriage.compare.patterns.error_view import Specimen
from tensortriage.compare.patterns.finding import LOG10_LUCK, PatternFinding, counted, listed, log10_binomial
from tensortriage.values.text import magnitude, percent

_PERIOD_FILLED = 0.8
"""Share of the places of a period that must be wrong: a right result comes about by chance."""

_NEARLY_ALL = 0.99
"""Share of the wrong elements that are in a place for it to be where they are."""

FEWEST_ALIKE = 3
"""Number of elements from which their common property is reported; fewer are reported one by one."""

_LEAST_OVERFLOW = 240
"""The smallest of the largest numbers of formats, that of fp8e4m3 without infinities: log(0) is no overflow."""
_FEWEST_PERIODS = 3
"""Repetitions that make a period: of any two indices the second is the first repeated."""

_FEWEST_WITH_EXCEPTIONS = 32
"""Of fewer elements no few can be called exceptions, since chance makes some of them larger."""

_FEWEST_NOISY = 128
"""Nor of fewer that have any error, where the others have one too: of 3,000 tensors of noise relative to normally
distributed numbers, few stood out in 0.1 % of those with 64 elements, in 0.03 % with 96, and in none with 128."""

_EXACT_TO = {"bf16": 1 << 8, "fp16": 1 << 11}
"""The largest of the whole numbers from 0 on that a format holds all: the next one is rounded."""

_FIRST_ROUNDED = 3
"""Indices behind those in which an error that comes of counting in the format begins: kernels have a few taps."""

_TILES = (128, 64, 32, 16, 8)
_LONGEST_PERIOD = 512
_WIDEST_BORDER = 8


def places(specimen: Specimen, wrong: np.ndarray, *, what: str, share: float) -> list[PatternFinding]:
    """Describe the place of the given elements.

    Args:
        specimen: The pair.
        wrong: The elements, bool of the box's shape.
        what: Name of the elements, in the plural: ``wrong elements``.
        share: Share of the error that they hold.
    """
    count = int(np.count_nonzero(wrong))
    if count == 0 or wrong.size < 2:
        return []
    found: list[PatternFinding] = []
    coordinates = np.nonzero(wrong)
    for axis, size in enumerate(specimen.shape):
        if size < 2:
            continue
        hits = np.bincount(coordinates[axis], minlength=size)
        finding = _periodic(specimen, hits, axis, what, share) or _concentrated(specimen, hits, axis, what, share)
        if finding:
            found.append(finding)
    if not found and (finding := _border(specimen, coordinates, what, share)):
        found.append(finding)
    return sorted(found, key=lambda item: (-item.strength, item.evidence.get("indices_hit", 0)))


def _concentrated(specimen: Specimen, hits: np.ndarray, axis: int, what: str, share: float) -> PatternFinding | None:
    """Are the elements in few indices of an axis?"""
    size, count = hits.size, int(hits.sum())
    order = np.argsort(-hits, kind="stable")
    needed = int(np.searchsorted(np.cumsum(hits[order]), _NEARLY_ALL * count)) + 1
    missed = count - int(hits[order[:needed]].sum())
    places_hit = np.sort(order[:needed])
    is_run = int(places_hit[-1] - places_hit[0]) == needed - 1
    if needed == size or (2 * needed > size and not is_run):
        return None
    # Runs of indices are fewer than sets of indices: about size**2 / 2.
    ways = 2.0 * math.log10(size) if is_run else log10_binomial(size, needed)
    chance = ways + log10_binomial(count, missed) + (count - missed) * math.log10(needed / size)
    if chance > LOG10_LUCK:
        return None
    chosen = specimen.indices[axis][places_hit].tolist()
    length = specimen.whole_reference.shape[axis]
    held = share * ((count - missed) / count)
    facts = {"axis": axis, "indices": chosen[:64], "indices_hit": needed, "axis_length": length, "share": held}
    tail = _tail_words(chosen, length, axis) if specimen.is_whole(axis) else ""
    slug = "tail" if tail else "axis"
    where = tail or f"in {listed(chosen, length)} along axis {axis}"
    which = f"all {what}" if missed == 0 else f"{percent((count - missed) / count)} of the {what}"
    counted_in = _counted_in(chosen) if specimen.is_whole(axis) else ""
    return PatternFinding(slug, f"{which} are {where}{counted_in}", held, facts)


def _counted_in(chosen: Sequence[int]) -> str:
    """Return that a format stops to hold whole numbers where the indices begin; empty where none does."""
    for name, last in _EXACT_TO.items():
        if len(chosen) >= FEWEST_ALIKE and 0 < chosen[0] - last <= _FIRST_ROUNDED:
            return f": {name} holds whole numbers up to {last} only, as of positions that are counted in it"
    return ""


def _tail_words(chosen: Sequence[int], length: int, axis: int) -> str:
    """Return where a tail begins; empty when the indices are not the last ones of the axis, or only the very last."""
    first = chosen[0]
    if first == 0 or chosen[-1] != length - 1 or len(chosen) != length - first:
        return ""
    tile = next((tile for tile in _TILES if first % tile == 0), 0)
    if len(chosen) == 1 and not tile:
        return ""
    one = len(chosen) == 1
    where = f"in the last {'index' if one else f'{len(chosen)} indices'} of axis {axis} "
    where += f"({first})" if one else f"({first}..{length - 1})"
    if not tile:
        return where
    partial = f", the tail that does not fill a tile of {tile}" if (length - first) < tile else ""
    return f"{where}, beyond a multiple of {tile}{partial}"


def _periodic(specimen: Specimen, hits: np.ndarray, axis: int, what: str, share: float) -> PatternFinding | None:
    """Are the elements in every n-th index of an axis?"""
    size, count = hits.size, int(hits.sum())
    if not specimen.is_whole(axis) or size < 2 * _FEWEST_PERIODS:
        return None
    hit = hits > 0
    for period in range(2, min(size // _FEWEST_PERIODS, _LONGEST_PERIOD) + 1):
        folded = np.bincount(np.arange(size) % period, weights=hits, minlength=period)
        residues = np.flatnonzero(folded >= (1.0 - _NEARLY_ALL) * count)
        if residues.size == 0 or 2 * residues.size > period or folded[residues].sum() < _NEARLY_ALL * count:
            continue
        covered = hit[np.isin(np.arange(size) % period, residues)].mean()
        chance = log10_binomial(period, residues.size) + count * math.log10(residues.size / period)
        if covered < _PERIOD_FILLED or chance + math.log10(period) > LOG10_LUCK:
            continue
        rests = ", ".join(str(int(rest)) for rest in residues[:8]) + (", ..." if residues.size > 8 else "")
        which = (
            f"where the index modulo {period} is {rests}" if residues.size > 1 else f"in every {ordinal(period)} index"
        )
        begin = f" (from {residues[0]} on)" if residues.size == 1 else ""
        facts = {"axis": axis, "period": period, "residues": residues[:64].tolist(), "share": share}
        return PatternFinding("period", f"all {what} are {which}{begin} of axis {axis}", share, facts)
    return None


def ordinal(count: int) -> str:
    """Return ``2nd``, ``3rd``, ``16th``."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th") if count % 100 not in (11, 12, 13) else "th"
    return f"{count}{ending}"


def _border(specimen: Specimen, coordinates: tuple[np.ndarray, ...], what: str, share: float) -> PatternFinding | None:
    """Are the elements within a few indices of either end of an axis, or of a pair of neighbouring axes?"""
    shape, count = specimen.shape, coordinates[0].size
    single = [(axis,) for axis in range(len(shape))]
    pairs = [(axis, axis + 1) for axis in range(len(shape) - 1)]
    for axes in [*single, *pairs]:
        if not all(shape[axis] >= 5 and specimen.is_whole(axis) for axis in axes):
            continue
        depth = np.minimum.reduce([np.minimum(coordinates[axis], shape[axis] - 1 - coordinates[axis]) for axis in axes])
        width = int(depth.max()) + 1
        inner = math.prod(max(shape[axis] - 2 * width, 0) / shape[axis] for axis in axes)
        if width > min(_WIDEST_BORDER, *(shape[axis] // 4 for axis in axes)) or inner <= 0.0:
            continue
        if count * math.log10(1.0 - inner) + math.log10(_WIDEST_BORDER) < LOG10_LUCK:
            where = f"axis {axes[0]}" if len(axes) == 1 else f"axes {axes[0]} and {axes[1]}"
            sentence = f"all {what} are at the border, within {counted(width, 'element')} of an end of {where}"
            return PatternFinding("border", sentence, share, {"axes": list(axes), "width": width, "share": share})
    return None


def spread_words(specimen: Specimen, wrong: np.ndarray, share: float) -> PatternFinding | None:
    """Describe wrong elements that are in no particular place: a few outliers, or many scattered ones.

    Args:
        specimen: Both tensors.
        wrong: Bool, in the specimen's shape.
        share: Share of the error's energy that the wrong elements hold, from 0 to 1.

    Returns:
        None where there are too few elements to speak of.
    """
    count, size = int(np.count_nonzero(wrong)), wrong.size
    noisy = int(np.count_nonzero(specimen.error))
    if size < _FEWEST_WITH_EXCEPTIONS or count < noisy < _FEWEST_NOISY:
        return None
    flat = np.flatnonzero(wrong.reshape(-1))
    worst = flat[np.argsort(-np.abs(specimen.error.reshape(-1)[flat]), kind="stable")[:3]]
    spots = [position(specimen, int(place)) for place in worst]
    facts = {"wrong": count, "of": size, "share": share, "worst": [list(spot) for spot in spots]}
    if count <= max(3, size // 100):
        at = ", ".join(str(list(spot)) for spot in spots) + (", ..." if count > len(spots) else "")
        looked_at = f"{size} examined" if size < specimen.whole_reference.size else str(size)
        sentence = f"{counted(count, 'element')} of {looked_at} {'is' if count == 1 else 'are'} wrong, at {at}; "
        return PatternFinding("outliers", sentence + "the others are within the noise", share, facts)
    sentence = f"{percent(count / size)} of the elements are wrong, scattered without a pattern"
    return PatternFinding("scattered", sentence, 0.3, facts)


def position(specimen: Specimen, place: int) -> tuple[int, ...]:
    """Return the index in the whole tensor of a flat index in the box."""
    found = np.unravel_index(place, specimen.shape)
    return tuple(int(indices[int(along)]) for indices, along in zip(specimen.indices, found, strict=True))


def nonfinite(specimen: Specimen) -> list[PatternFinding]:
    """Describe the non-finite elements of the target that the reference does not have."""
    broken = specimen.broken
    count = int(np.count_nonzero(broken))
    if not count:
        return []
    values = specimen.target[broken]
    kinds = [
        (int(np.count_nonzero(np.isnan(values))), "NaN"),
        (int(np.count_nonzero(values == math.inf)), "Inf"),
        (int(np.count_nonzero(values == -math.inf)), "-Inf"),
    ]
    word = " and ".join(name for number_of, name in kinds if number_of)
    which = "every element" if count == broken.size else f"{percent(count / broken.size)} of the elements"
    if count <= FEWEST_ALIKE:
        spots = ", ".join(str(list(position(specimen, int(place)))) for place in np.flatnonzero(broken.reshape(-1)))
        which = f"{counted(count, 'element')} of {broken.size} (at {spots})"
    verb = "is" if count == 1 or which == "every element" else "are"
    facts = {"elements": count, "of": broken.size, "share": count / broken.size} | {name: n for n, name in kinds}
    common = _common(specimen, broken)
    found = [PatternFinding("nonfinite", f"{which} {verb} {word} in the target only{common}", 1.0, facts)]
    if FEWEST_ALIKE < count < broken.size:
        found += places(specimen, broken, what="NaN and Inf", share=0.99)  # told after that they are
    return found


def _common(specimen: Specimen, broken: np.ndarray) -> str:
    """Return the property of the reference where the target is not finite; empty when there is none."""
    ours = specimen.reference[broken & np.isfinite(specimen.reference)]
    others = specimen.reference[specimen.finite]
    if ours.size < FEWEST_ALIKE or others.size < FEWEST_ALIKE:
        return ""
    if np.abs(ours).min() > (most := np.abs(others).max()):
        cause = ": an overflow" if np.abs(ours).min() > _LEAST_OVERFLOW else ""
        return f", exactly where the reference's magnitude exceeds {magnitude(float(most), 4)}{cause}"
    if ours.max() < others.min():
        return f", exactly where the reference is below {magnitude(float(others.min()), 4)}"
    if ours.min() > others.max():
        return f", exactly where the reference is above {magnitude(float(others.max()), 4)}"
    if not ours.any() and others.all():
        return ", exactly where the reference is zero"
    return ""
