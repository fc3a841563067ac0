"""Right numbers in wrong places: whether a tensor, or a set of outputs, is the right one in another order.

Orders are tried alone, for some look like something else too: a transposed Softmax is also one of the wrong axis. A
pattern counts when it explains nine tenths of the squared error and not by luck (`compare.finding`): it is recognised
under the rounding of any format, and rounding alone is never mistaken for one.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from tensortriage.compare.alignment.align import by_value
from tensortriage.compare.alignment.value_matching import Relation
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.compare.patterns import misplaced, reordered
from tensortriage.compare.patterns.anatomy import dissect
from tensortriage.compare.patterns.blocked_layout import blocked
from tensortriage.compare.patterns.error_view import lay_out
from tensortriage.compare.patterns.finding import PATTERN_SHARE, PatternFinding

ORDERS = ("transposition", "layout", "reordering", "permutation")
"""Findings that all values are there, in another order; a shift by given places is an index error instead."""

_WORDS = {
    Relation.EQUAL: "",
    Relation.RESHAPED: " under another shape",
    Relation.TRANSPOSED: " transposed",
    Relation.REORDERED: " in another order",
}


def moved(reference: np.ndarray, target: np.ndarray, *, floor: float = 0.0) -> PatternFinding | None:
    """Return how a tensor is the reference in another order; None when it is not.

    Args:
        reference: The tensor as it should be.
        target: The tensor under suspicion, of the same or of another shape.
        floor: Relative RMS error that a healthy engine may have in it.
    """
    reference, target = np.asarray(reference), np.asarray(target)
    if reference.size != target.size or reference.dtype.kind in "USO" or target.dtype.kind in "USO":
        return None
    floor = floor if np.isfinite(floor) else 0.0
    if reference.shape != target.shape:
        return next(filter(other_order, dissect(reference, target, floor=floor).findings), None)
    specimen = lay_out(reference, target, floor=floor)
    if not 0.0 < specimen.error_energy < math.inf:
        return None
    probe = misplaced.Probe.of(specimen)
    if misplaced.shifted(probe):
        return None  # a rotation is an order as well, but made by an index
    questions: tuple[Callable[[], PatternFinding | None], ...] = (
        lambda: misplaced.reversed_order(probe),
        lambda: misplaced.transposed(probe),
        lambda: blocked(probe),
        lambda: reordered.reordered(specimen),
        lambda: reordered.permuted(specimen),
    )
    return next((found for question in questions if (found := question()) and other_order(found)), None)


def other_order(finding: PatternFinding) -> bool:
    """Return whether a finding is that all values are there, in another order or under another shape."""
    reshaped = finding.slug == "shape" and "same_memory_order" in finding.evidence
    return finding.strength >= PATTERN_SHARE and (finding.slug in ORDERS or reshaped)


def exchanged(
    reference: Mapping[str, np.ndarray], target: Mapping[str, np.ndarray], limits: Mapping[str, float]
) -> dict[str, str]:
    """Return which outputs hold which, when some that are wrong hold each other's values.

    Args:
        reference: The outputs as they should be.
        target: The wrong outputs.
        limits: Largest relative error of each that is no fault.

    Returns:
        Name to the name of the output whose values it holds, a permutation without fixed points; empty when it is none.
    """
    found: dict[str, str] = {}
    for name, array in target.items():
        for other in target:
            fits = other != name and reference[other].shape == array.shape
            if fits and error_of(measure(reference[other], array)) <= limits.get(other, 0.0):
                found[name] = other
                break
    return found if found and set(found) == set(found.values()) else {}


def recognised(reference: Mapping[str, np.ndarray], target: Mapping[str, np.ndarray]) -> str:
    """Return in words which outputs of the target hold which of the reference's, recognised by value; empty when none.

    For outputs that cannot be compared by name: their names are unknown, or their shapes differ.
    """
    orders = [
        f"'{match.target}' holds '{match.reference}'{_WORDS[match.relation]}"
        for match in by_value(reference, target)
        if match.target != match.reference
    ]
    return ", ".join(orders[:4])
