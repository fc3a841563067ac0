"""The task metric of every participant on every feed, with the little that is kept of each: memory stays flat."""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.task_metric import SampleScore, TaskComparison, compare_scores
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed

Arrays = Mapping[str, np.ndarray]


@frozen_dataclass
class _Kept:
    """The stored part of one run, or of one row of it."""

    feed: str
    row: int | None
    score: float
    label: tuple[int, ...]
    margin: float | None
    largest: float
    shape: tuple[int, ...]


class TaskScores:
    """Collects the metric, run by run."""

    def __init__(self) -> None:
        self._kept: dict[str, list[_Kept]] = {}

    def add(self, participant: str, feed: Feed, outputs: Arrays, scores: Sequence[float]) -> None:
        """Store the scores of one run: by one score, or one for each row."""
        decided = _decided(outputs)
        floats = [array for array in feed.tensors.values() if array.dtype.kind == "f" and array.size]
        largest = max((float(np.abs(array).max()) for array in floats), default=0.0)
        shape = max((array.shape for array in feed.tensors.values()), key=lambda size: int(np.prod(size)), default=())
        found = self._kept.setdefault(participant, [])
        for place, score in enumerate(scores):
            row = place if len(scores) > 1 else None
            part = decided if row is None else decided[place : place + 1] if len(decided) == len(scores) else []
            label, margin = tuple(label for label, _ in part), min((lead for _, lead in part), default=None)
            found.append(_Kept(feed.name, row, score, label, margin, largest, tuple(shape)))

    @property
    def means(self) -> dict[str, float]:
        """Mean of the metric by participant."""
        return {who: sum(one.score for one in runs) / len(runs) for who, runs in self._kept.items()}

    def compared(self, reference: str, targets: Sequence[str]) -> tuple[TaskComparison, ...]:
        """Return every target against the reference, on the feeds that both ran; none where a metric is no number."""
        right = {(one.feed, one.row): one for one in self._kept.get(reference, ())}
        found = []
        for target in targets:
            mine = [((one.feed, one.row), one) for one in self._kept.get(target, ())]
            samples = [
                SampleScore(r.feed, r.score, t.score, r.label, t.label, r.margin, r.largest, r.shape, r.row)
                for r, t in [(right[place], one) for place, one in mine if place in right]
            ]
            if samples and all(np.isfinite([s.reference, s.target]).all() for s in samples):
                found.append(compare_scores(target, samples))
        return tuple(found)


def _decided(outputs: Arrays) -> list[tuple[int, float]]:
    """Return the largest score of each row and its lead, where the first output is scores ``[rows, classes]``."""
    first = next(iter(outputs.values()), None)
    if first is None or first.ndim != 2 or first.shape[1] < 2 or not len(first) or first.dtype.kind in "biuSUO":
        return []
    scores = first.astype(np.float64)
    second, best = np.partition(scores, -2, axis=1)[:, -2:].T
    return list(zip(map(int, scores.argmax(axis=1)), map(float, best - second), strict=True))
