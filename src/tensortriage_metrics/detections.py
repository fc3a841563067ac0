"""Boxes that are matched by IoU: the average precision of each picture, as COCO's is (Lin et al., 2014).

The right boxes are the labels', or those of the reference with a score of `SURE` or more. Detections are taken by
falling score; one hits the free right box of its class that it overlaps most, if by the threshold at least. The average
precision is that of all points, averaged over thresholds 0.5 to 0.95 and over the classes that are there.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

Arrays = Mapping[str, np.ndarray]
SURE = 0.25
"""Score from which a detection of the reference counts as right: the default of detectors."""
THRESHOLDS = np.arange(0.5, 1.0, 0.05)
"""IoU from which a box is hit: COCO's."""
SUPPRESSED, MOST = 0.45, 300
"""IoU from which the weaker of two raw boxes goes, and how many are kept: Ultralytics' defaults."""


class Boxes(NamedTuple):
    """The boxes of one picture: corners ``[n, 4]``, scores ``[n]``, classes ``[n]``."""

    corners: np.ndarray
    scores: np.ndarray
    classes: np.ndarray

    def at(self, kept: np.ndarray) -> "Boxes":
        """Return a selection of them, by a mask or in an order."""
        return Boxes(self.corners[kept], self.scores[kept], self.classes[kept])


def boxes(
    outputs: Arrays, feed: Arrays, labels: np.ndarray | Arrays | None = None, reference: Arrays | None = None
) -> np.ndarray:
    """Return the average precision of each picture.

    Args:
        outputs: Boxes ``[pictures, n, 4]`` with scores and classes as outputs of their own, rows
            ``[pictures, n, 6]`` of corners, score and class, or the raw head of a YOLO, ``[pictures, 4 + classes, n]``.
        feed: The feed.
        labels: Arrays ``boxes`` and ``labels``, or rows of corners and class; None for the reference's boxes.
        reference: Outputs of the reference.

    Raises:
        ValueError: When no output holds boxes.
    """
    found = pictures(outputs)
    if labels is not None:
        named = labels if isinstance(labels, Mapping) else {"rows": labels}
        wanted = _labelled(named, len(found))
    elif reference:
        wanted = [each.at(each.scores >= SURE) for each in pictures(reference)]
    else:
        raise ValueError("there are neither labels nor a reference's outputs to agree with")
    if len(found) != len(wanted):
        raise ValueError(f"{len(found)} pictures of boxes, {len(wanted)} of labels")
    return np.array([average_precision(*pair) for pair in zip(found, wanted, strict=True)])


def average_precision(found: Boxes, wanted: Boxes) -> float:
    """Return the average precision of one picture; 1 where there is nothing to find and nothing is found."""
    found = found.at(np.isfinite(found.scores) & np.isfinite(found.corners).all(axis=1))
    if not len(wanted.scores):
        return float(not (found.scores >= SURE).any())
    scores = []
    for kind in np.unique(wanted.classes):
        right, ours = wanted.at(wanted.classes == kind), found.at(found.classes == kind)
        overlaps = iou(ours.at(np.argsort(-ours.scores, kind="stable")).corners, right.corners)
        scores.append(np.mean([_area(overlaps, threshold) for threshold in THRESHOLDS]))
    return float(np.mean(scores))


def _area(overlaps: np.ndarray, threshold: float) -> float:
    """Return the area under precision against recall; rows of overlaps are detections by falling score."""
    free, hits = np.ones(overlaps.shape[1], bool), []
    for row in overlaps:
        best = int(np.where(free, row, -1.0).argmax())
        hit = bool(free[best] and row[best] >= threshold)
        free[best] &= not hit
        hits.append(hit)
    if not hits:
        return 0.0
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(envelope[np.array(hits)].sum() / overlaps.shape[1])


def iou(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return the overlap of every box with every other, ``[n, m]``, as intersection over union."""
    low = np.maximum(ours[:, None, :2], theirs[None, :, :2])
    high = np.minimum(ours[:, None, 2:], theirs[None, :, 2:])
    shared = np.clip(high - low, 0.0, None).prod(axis=2)
    areas = [np.clip(each[:, 2:] - each[:, :2], 0.0, None).prod(axis=1) for each in (ours, theirs)]
    return np.asarray(shared / np.maximum(areas[0][:, None] + areas[1][None] - shared, 1e-12))


def pictures(outputs: Arrays) -> list[Boxes]:
    """Return the boxes of each picture out of a detector's outputs.

    Raises:
        ValueError: When no output holds boxes.
    """
    arrays = {name: np.asarray(array, np.float64) for name, array in outputs.items() if array.dtype.kind in "fVbiu"}
    place = next((n for n, a in arrays.items() if a.ndim in (2, 3) and a.shape[-1] == 4), "")
    if place:
        return _apart(arrays, place)
    for array in arrays.values():
        if array.ndim in (2, 3) and array.shape[-1] == 6:
            return [_rows(each) for each in (array if array.ndim == 3 else array[None])]
        if array.ndim == 3 and 5 <= array.shape[1] < array.shape[2]:
            return [_raw(each.T) for each in array]
    raise ValueError(f"no output holds boxes: {', '.join(f'{n} {list(a.shape)}' for n, a in outputs.items())}")


def _apart(arrays: Arrays, place: str) -> list[Boxes]:
    """Return boxes whose scores and classes are outputs of their own."""
    batched = arrays[place].ndim == 3
    corners = arrays[place] if batched else arrays[place][None]

    def beside(words: str) -> np.ndarray | None:
        found = next((a for n, a in arrays.items() if n != place and re.search(words, n.lower())), None)
        return None if found is None else found if batched else found[None]

    scores, classes = beside("score|conf|prob|logit"), beside("class|label|cat")
    scores = np.ones(corners.shape[:2]) if scores is None else scores
    if scores.ndim == 3:  # of every class
        classes, scores = scores.argmax(axis=2), scores.max(axis=2)
    classes = np.zeros(corners.shape[:2]) if classes is None else classes
    return [Boxes(_corners(c), s.reshape(-1), k.reshape(-1)) for c, s, k in zip(corners, scores, classes, strict=True)]


def _rows(rows: np.ndarray) -> Boxes:
    return Boxes(_corners(rows[:, :4]), rows[:, 4], rows[:, 5])


def _corners(given: np.ndarray) -> np.ndarray:
    """Return corners; boxes that mostly end before they begin are centres and sizes."""
    if len(given) and np.mean((given[:, 2:] < given[:, :2]).any(axis=1)) > 0.5:
        return _of_centres(given)
    return given


def _of_centres(given: np.ndarray) -> np.ndarray:
    return np.concatenate([given[:, :2] - given[:, 2:] / 2, given[:, :2] + given[:, 2:] / 2], axis=1)


def _raw(rows: np.ndarray) -> Boxes:
    """Return the boxes of a raw head ``[n, 4 + classes]`` after suppression of overlapping ones."""
    scores = rows[:, 4:].max(axis=1)
    all_ = Boxes(_of_centres(rows[:, :4]), scores, rows[:, 4:].argmax(axis=1))
    able = all_.at(np.flatnonzero(scores >= SURE / 5))
    able = able.at(np.argsort(-able.scores, kind="stable")[: 4 * MOST])
    kept: list[int] = []
    left = np.ones(len(able.scores), bool)
    overlaps = iou(able.corners, able.corners) * (able.classes[:, None] == able.classes[None])
    for number in range(len(left)):
        if left[number] and len(kept) < MOST:
            kept.append(number)
            left &= overlaps[number] < SUPPRESSED
    return able.at(np.array(kept, int))


def _labelled(labels: Arrays, count: int) -> list[Boxes]:
    """Return the labels' boxes of each picture; a row of zeros, as padding is, is none."""
    named = {name.lower(): np.asarray(array, np.float64) for name, array in labels.items()}
    place = next((name for name in named if "box" in name or name == "rows"), next(iter(named)))
    rows = named.pop(place)
    rows = rows if rows.ndim == 3 else rows[None]
    if rows.ndim != 3 or rows.shape[-1] < 4:
        raise ValueError(f"labels of shape {list(rows.shape)} are not boxes: give [n, 4] and classes, or [n, 5]")
    kinds = next(iter(named.values()), rows[..., 4] if rows.shape[-1] > 4 else np.zeros(rows.shape[:2]))
    kinds = kinds.reshape(len(rows), -1)
    made = [Boxes(_corners(each[:, :4]), np.ones(len(each)), kind) for each, kind in zip(rows, kinds, strict=True)]
    return [each.at(np.flatnonzero(each.corners.any(axis=1))) for each in made]
