"""What the elements that are NaN or Inf in the target only have in common: their places, and the reference there."""

import math

import numpy as np

from tensortriage.compare.patterns.error_places import places, position
from tensortriage.compare.patterns.error_view import Specimen
from tensortriage.compare.patterns.finding import PatternFinding, counted, number, percent

_FEW = 3


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
    if count <= _FEW:
        spots = ", ".join(str(list(position(specimen, int(place)))) for place in np.flatnonzero(broken.reshape(-1)))
        which = f"{counted(count, 'element')} of {broken.size} (at {spots})"
    verb = "is" if count == 1 or which == "every element" else "are"
    facts = {"elements": count, "of": broken.size, "share": count / broken.size} | {name: n for n, name in kinds}
    common = _common(specimen, broken)
    found = [PatternFinding("nonfinite", f"{which} {verb} {word} in the target only{common}", 1.0, facts)]
    if _FEW < count < broken.size:
        found += places(specimen, broken, what="NaN and Inf", share=_NEAR_ONE)
    return found


_NEAR_ONE = 0.99
"""Strength of where NaN and Inf are: told after that they are."""


def _common(specimen: Specimen, broken: np.ndarray) -> str:
    """Return what sets the reference apart where the target is not finite; empty when nothing does."""
    ours = specimen.reference[broken & np.isfinite(specimen.reference)]
    others = specimen.reference[specimen.finite]
    if ours.size < _FEW or others.size < _FEW:
        return ""
    if np.abs(ours).min() > np.abs(others).max():
        return f", exactly where the reference's magnitude exceeds {number(float(np.abs(others).max()))}: an overflow"
    if ours.max() < others.min():
        return f", exactly where the reference is below {number(float(others.min()))}"
    if ours.min() > others.max():
        return f", exactly where the reference is above {number(float(others.max()))}"
    if not ours.any() and others.all():
        return ", exactly where the reference is zero"
    return ""
