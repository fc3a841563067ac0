"""The task metric of every participant on every feed, with the little that is kept of each: memory stays flat."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.task_metric import SampleScore, TaskComparison, compare_scores
from tensortriage.inputs.feed import Feed

Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """The stored part of one run."""

    feed: str
    score: float
    label: tuple[int, ...]
    margin: float | None
    largest: float
    shape: tuple[int, ...]


class TaskScores:
    """Collects the metric, run by run."""

    def __init__(self) -> None:
        self._kept: dict[str, list[_Kept]] = {}

    def add(self, participant: str, feed: Feed, outputs: Arrays, score: float) -> None:
        """Keep what one run says."""
        label, margin = _decided(outputs)
        floats = [array for array in feed.tensors.values() if array.dtype.kind == "f" and array.size]
        largest = max((float(np.abs(array).max()) for array in floats), default=0.0)
        shape = max((array.shape for array in feed.tensors.values()), key=lambda size: int(np.prod(size)), default=())
        kept = _Kept(feed.name, score, label, margin, largest, tuple(shape))
        self._kept.setdefault(participant, []).append(kept)

    @property
    def means(self) -> dict[str, float]:
        """Mean of the metric by participant."""
        return {who: sum(one.score for one in runs) / len(runs) for who, runs in self._kept.items()}

    def compared(self, reference: str, targets: Sequence[str]) -> tuple[TaskComparison, ...]:
        """Return every target against the reference, on the feeds that both ran; none where a metric is no number."""
        right = {one.feed: one for one in self._kept.get(reference, ())}
        found = []
        for target in targets:
            both = [(right[one.feed], one) for one in self._kept.get(target, ()) if one.feed in right]
            samples = [
                SampleScore(r.feed, r.score, t.score, r.label, t.label, r.margin, r.largest, r.shape) for r, t in both
            ]
            if samples and all(np.isfinite([s.reference, s.target]).all() for s in samples):
                found.append(compare_scores(target, samples))
        return tuple(found)


def _decided(outputs: Arrays) -> tuple[tuple[int, ...], float | None]:
    """Return the largest score of each row and its least lead, where the first output is scores ``[rows, classes]``."""
    first = next(iter(outputs.values()), None)
    if first is None or first.ndim != 2 or first.shape[1] < 2 or not len(first) or first.dtype.kind in "biuSUO":
        return (), None
    scores = first.astype(np.float64)
    second, best = np.partition(scores, -2, axis=1)[:, -2:].T
    return tuple(map(int, scores.argmax(axis=1))), float((best - second).min())
