"""Indices that scores decide, compared as decisions: is the target's pick a valid one by the reference's scores?

Scores tie when they differ by less than both errors together, and either may win. So the target need not return the
reference's indices, but indices that *some* scores within a radius of the reference's lead to: an index whose score is
as good as the best, ranks whose scores are those of the reference's ranks, a set of boxes that the greedy suppression
may end with. A different but valid pick is a tie; the others are mismatches.
"""

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass

SHARE = "share of {unit} beyond a tie"
"""Name of the figure of such a comparison."""


@frozen_dataclass
class RankedComparison:
    """The target's decisions against the reference's.

    Attributes:
        unit: Unit of the counts: ``indices``, ``ranks`` or ``boxes``.
        count: Entries of the reference's decision; the target's where it has more.
        mismatches: Entries that no scores within the radius lead to.
        ties: Entries that differ from the reference's, and are as good.
        worst_margin: Distance of the worst differing entry from a tie, as a share of the width of a tie: a tie up to 1;
            infinite for an invalid index (repeated, or out of range).
    """

    unit: str
    count: int
    mismatches: int
    ties: int
    worst_margin: float = 0.0

    @property
    def differing(self) -> int:
        """Entries that differ from the reference's."""
        return self.mismatches + self.ties

    def __add__(self, other: "RankedComparison") -> "RankedComparison":
        """Return both counted as one; the unit is the first one's."""
        return RankedComparison(
            self.unit,
            self.count + other.count,
            self.mismatches + other.mismatches,
            self.ties + other.ties,
            max(self.worst_margin, other.worst_margin),
        )

    @property
    def share(self) -> float:
        """Share of entries beyond a tie."""
        return self.mismatches / self.count if self.count else 0.0

    @property
    def measure(self) -> str:
        """The meaning of `share`, in words."""
        return SHARE.format(unit=self.unit)

    def in_words(self, noise: str) -> str:
        """Return the comparison as a sentence without subject.

        Args:
            noise: The cause of ties, e.g. ``bf16's rounding of the scores``.
        """
        if not self.differing:
            return f"all {self.count} {self.unit} are the reference's"
        if not self.mismatches:
            what = f"all ties within {noise}" if self.differing > 1 else f"a tie within {noise}"
            return f"{self.differing} of {self.count} {self.unit} differ, {what}"
        beyond = f"{self.mismatches} of {self.count} {self.unit} differ by more than {noise}"
        return beyond + (f" ({self.ties} more are ties)" if self.ties else "")


@frozen_dataclass
class ScoredChoice:
    """The decision that scores make.

    Attributes:
        axis: Along which the extremes are looked for.
        radius: How far a score may be off, absolute: one number, or one per score.
        largest: Whether the largest scores win.
        ordered: Whether the order of several indices counts.
    """

    axis: int
    radius: float | np.ndarray = 0.0
    largest: bool = True
    ordered: bool = True

    def rows(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and radii as ``[row, candidate]``, float64, the larger score the better."""
        return _rows(scores, self.axis, self.largest), _rows(np.broadcast_to(self.radius, scores.shape), self.axis)


def compare_extremes(
    reference: np.ndarray, target: np.ndarray, scores: np.ndarray, choice: ScoredChoice
) -> RankedComparison:
    """Compare indices of extremes (ArgMax, ArgMin).

    Args:
        reference: The reference's indices: the shape of the scores with the axis left out or of size 1.
        target: The target's indices, as many.
        scores: The reference's scores.
        choice: What they decide.
    """
    ours, theirs = (_choices(indices, scores, choice.axis) for indices in (reference, target))
    return _compare_rows(ours, theirs, *choice.rows(scores), unit="indices")


def compare_top_k(
    reference: np.ndarray, target: np.ndarray, scores: np.ndarray, choice: ScoredChoice
) -> RankedComparison:
    """Compare the indices of a TopK, rank by rank: the first index is that of the best score, and so on.

    Args:
        reference: The reference's indices, of the shape of the scores but for the axis.
        target: The target's indices, of the same shape.
        scores: The reference's scores.
        choice: What they decide; where the order is irrelevant, indices that both have are at one rank.
    """
    rows, radii = choice.rows(scores)
    ours, theirs = (_rows(np.asarray(indices, np.int64), choice.axis) for indices in (reference, target))
    if not choice.ordered:
        ours, theirs = (_best_first(indices, rows) for indices in (ours, theirs))
        theirs = _aligned(ours, theirs)
    return _compare_rows(ours, theirs, rows, radii, unit="ranks")


def _compare_rows(
    ours: np.ndarray, theirs: np.ndarray, rows: np.ndarray, radii: np.ndarray, *, unit: str
) -> RankedComparison:
    """Compare choices ``[row, rank]`` among scores ``[row, candidate]``; the larger score is the better."""
    size = rows.shape[1]
    theirs = np.where((theirs < 0) & (theirs >= -size), theirs + size, theirs)
    known = (theirs >= 0) & (theirs < size) & ~_repeated(theirs) & (ours >= 0) & (ours < size)
    gap, slack = _gaps(np.where(known, ours, 0), np.where(known, theirs, 0), rows, radii)
    differs = ours != theirs
    margin = np.where(known, _over(gap, slack), np.inf)
    wrong = differs & (~known | ~(gap <= slack))
    worst = float(margin[differs].max()) if differs.any() else 0.0
    return RankedComparison(unit, ours.size, int(wrong.sum()), int((differs & ~wrong).sum()), worst)


def _gaps(ours: np.ndarray, theirs: np.ndarray, rows: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how far the scores of two choices are apart, and how far they may be.

    Sorting moves no score further than the scores themselves moved, so the target's score at a rank is within a radius
    of the reference's at that rank, and its candidate's own is within another.
    """
    scores = [np.take_along_axis(rows, choice, 1) for choice in (ours, theirs)]
    with np.errstate(invalid="ignore"):
        gap = np.where(scores[0] == scores[1], 0.0, np.abs(scores[0] - scores[1]))
    slack = np.take_along_axis(radii, ours, 1) + np.take_along_axis(radii, theirs, 1)
    return gap, slack


def _rows(array: np.ndarray, axis: int, largest: bool = True) -> np.ndarray:
    """Return an array as rows along an axis; scores in float64, negated where the smallest wins."""
    moved = np.moveaxis(np.asarray(array), axis, -1)
    if moved.dtype != np.int64:
        moved = moved.astype(np.float64)
    rows = moved.reshape(-1, moved.shape[-1])
    return rows if largest else -rows


def _choices(indices: np.ndarray, scores: np.ndarray, axis: int) -> np.ndarray:
    """Return the indices of extremes as ``[row, 1]``, whether or not their axis was kept."""
    shape = list(scores.shape)
    shape[axis] = 1
    return _rows(np.asarray(indices, np.int64).reshape(shape), axis)


def _best_first(choices: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the choices of every row in the order of their scores, those that are no index last."""
    size = rows.shape[1]
    known = (choices >= -size) & (choices < size)
    scores = np.where(known, np.take_along_axis(rows, np.where(known, choices, 0), 1), -np.inf)
    return np.take_along_axis(choices, np.argsort(-scores, axis=1, kind="stable"), 1)


def _aligned(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return their choices with those that both sides have at our places, and the others in order in between."""
    aligned = np.empty_like(theirs)
    for row, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        places = {int(choice): place for place, choice in reversed(list(enumerate(mine)))}
        rest = []
        used = np.zeros(len(mine), bool)
        for choice in other:
            place = places.pop(int(choice), None)
            if place is None:
                rest.append(choice)
            else:
                aligned[row, place], used[place] = choice, True
        aligned[row, ~used] = rest
    return aligned


def _repeated(choices: np.ndarray) -> np.ndarray:
    """Return which choices occurred in their row before."""
    order = np.argsort(choices, axis=1, kind="stable")
    ascending = np.take_along_axis(choices, order, 1)
    again = np.zeros(choices.shape, bool)
    np.put_along_axis(again, order[:, 1:], ascending[:, 1:] == ascending[:, :-1], 1)
    return again


def _over(gap: np.ndarray, slack: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(gap == 0.0, 0.0, np.where(slack > 0.0, gap / slack, np.inf))
