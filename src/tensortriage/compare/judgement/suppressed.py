"""Sets of boxes that a non-maximum suppression left over, compared as sets.

The greedy suppression takes the best score, drops boxes that overlap it by more than a threshold, and continues. It may
end with a set, for scores and boxes within a radius of the reference's, when (1) every box in the set passes the score
threshold, (2) no two of a class overlap too much, and (3) every other box is below the threshold, or overlaps a box of
the set that is no worse, or came after the last box allowed. The order of the boxes does not matter: ONNX
(NonMaxSuppression) prescribes none.
"""

import math
from collections.abc import Iterable

import numpy as np

from tensortriage.compare.judgement.ranked import RankedComparison
from tensortriage.frozen_dataclass import frozen_dataclass

UNIT = "boxes"
Triple = tuple[int, int, int]


@frozen_dataclass
class SuppressionLimits:
    """Limits of a non-maximum suppression, with the defaults of ONNX.

    Attributes:
        most: Boxes that may be left over per batch and class.
        overlap: Intersection over union above which the lower score is dropped.
        score: A box needs a score above this; None for no threshold.
        corners: Whether boxes are two opposite corners (y, x, y, x), else centre and size (x, y, width, height).
    """

    most: int = 0
    overlap: float = 0.0
    score: float | None = None
    corners: bool = True


def compare_suppressed(
    reference: np.ndarray,
    target: np.ndarray,
    boxes: np.ndarray,
    scores: np.ndarray,
    *,
    limits: SuppressionLimits,
    radii: tuple[float, float] = (0.0, 0.0),
) -> RankedComparison:
    """Compare two selections of boxes.

    Args:
        reference: The reference's selection, ``[n, 3]``: batch, class, box.
        target: The target's, ``[m, 3]``.
        boxes: The reference's boxes, ``[batch, box, 4]``.
        scores: The reference's scores, ``[batch, class, box]``.
        limits: The limits of the suppression.
        radii: How far a score, and how far a coordinate, may be off, absolute.
    """
    ours, theirs = _triples(reference), _triples(target)
    count, mismatches, ties, worst = max(len(ours), len(theirs)), len(theirs) - len(set(theirs)), 0, 0.0
    if mismatches:
        worst = math.inf
    sides = (set(ours), set(theirs))
    for batch, label in sorted({triple[:2] for triple in sides[0] ^ sides[1]}):
        mine, other = ({box for b, c, box in side if (b, c) == (batch, label)} for side in sides)
        if not (0 <= batch < scores.shape[0] and 0 <= label < scores.shape[1]):
            mismatches, worst = mismatches + len(other), math.inf
            continue
        found = _Class(boxes[batch], scores[batch, label], limits, *radii)
        for margin in [*found.extra(other, other - mine), *found.missing(other, mine - other)]:
            mismatches, ties = mismatches + (margin > 1.0), ties + (margin <= 1.0)
            worst = max(worst, margin)
    return RankedComparison(UNIT, max(count, mismatches + ties), mismatches, ties, worst)


class _Class:
    """The boxes and scores of one class of one batch element, and how a selection among them may come about."""

    def __init__(
        self, boxes: np.ndarray, scores: np.ndarray, limits: SuppressionLimits, radius: float, box_radius: float
    ) -> None:
        self.boxes, self.scores = _corners(boxes, limits.corners), np.asarray(scores, np.float64)
        self.limits, self.radius = limits, radius
        # Half a size moves a corner as far as its centre does: a corner made of both is off by 1.5 times as much.
        self.box_radius = box_radius if limits.corners else 1.5 * box_radius

    def extra(self, chosen: set[int], added: Iterable[int]) -> list[float]:
        """Return how far each box that only the target has is from a tie (above 1: it is none)."""
        return [self._extra(chosen, box) for box in sorted(added)]

    def missing(self, chosen: set[int], lacking: Iterable[int]) -> list[float]:
        """Return how far each box that only the reference has is from being a tie."""
        return [self._missing(chosen, box) for box in sorted(lacking)]

    def _extra(self, chosen: set[int], box: int) -> float:
        if not 0 <= box < len(self.scores):
            return math.inf
        margin = 0.0
        if self.limits.score is not None:
            margin = _over(self.limits.score - self.scores[box], self.radius)
        for other in chosen - {box}:
            if 0 <= other < len(self.scores):
                margin = max(margin, self._overlap_margin(box, other, above=False))
        better = sorted((self.scores[j] for j in self._known(chosen)), reverse=True)
        if len(better) > self.limits.most:
            margin = max(margin, _over(better[self.limits.most - 1] - self.scores[box], 2 * self.radius))
        return margin

    def _missing(self, chosen: set[int], box: int) -> float:
        reasons = [math.inf]
        if self.limits.score is not None:
            reasons.append(_over(self.scores[box] - self.limits.score, self.radius))
        known = self._known(chosen)
        for other in known:
            worse = _over(self.scores[box] - self.scores[other], 2 * self.radius)
            reasons.append(max(worse, self._overlap_margin(box, other, above=True)))
        if len(chosen) >= self.limits.most and known:
            last = min(self.scores[j] for j in known)
            reasons.append(_over(self.scores[box] - last, 2 * self.radius))
        return min(reasons)

    def _known(self, chosen: set[int]) -> list[int]:
        return [box for box in chosen if 0 <= box < len(self.scores)]

    def _overlap_margin(self, one: int, other: int, *, above: bool) -> float:
        """Return the share of the radius that lifts the overlap of two boxes above the threshold, or below it."""
        limit = self.limits.overlap
        exact, bound = (_overlap(self.boxes[one], self.boxes[other], by, above) for by in (0.0, self.box_radius))
        if exact > limit if above else exact <= limit:
            return 0.0
        reach = bound - exact if above else exact - bound
        return _over(limit - exact if above else exact - limit, reach)


def _overlap(one: np.ndarray, other: np.ndarray, radius: float, above: bool) -> float:
    """Return an upper (``above``) or lower bound of the intersection over union of corners that are off by a radius."""
    sign = 1.0 if above else -1.0
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2]) + sign * 2 * radius
    intersection = float(np.prod(np.maximum(sides, 0.0)))
    areas = sum(float(np.prod(np.maximum(box[2:] - box[:2] - sign * 2 * radius, 0.0))) for box in (one, other))
    union = areas - intersection
    if intersection <= 0.0:
        return 0.0
    return min(1.0, intersection / union) if union > 0.0 else 1.0


def _corners(boxes: np.ndarray, corners: bool) -> np.ndarray:
    """Return boxes as ``[box, 4]``: the lower two coordinates, then the upper two, in float64."""
    boxes = np.asarray(boxes, np.float64)
    first, second = boxes[:, :2], boxes[:, 2:]
    if not corners:
        first, second = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=1)


def _triples(selection: np.ndarray) -> list[Triple]:
    return [(int(a), int(b), int(c)) for a, b, c in np.asarray(selection).reshape(-1, 3)]


def _over(gap: float, slack: float) -> float:
    if not gap > 0.0:
        return math.inf if math.isnan(gap) else 0.0
    return gap / slack if slack > 0.0 else math.inf
