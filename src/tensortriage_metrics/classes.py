"""Top-1, top-5 and token agreement: is the right class the first, or among the first five?

Scores have classes along their last axis, or along the second where labels have the shape that is left without it, as
in segmentation. Negative labels are none, as PyTorch's ``ignore_index`` of -100; of equal scores the first class wins,
as with argmax, and a NaN is never right.
"""

from functools import partial

import numpy as np

from tensortriage_metrics.choice import Arrays, chosen, right

_SCORES = "logit|score|prob|class|label|pred|token|id"
Labels = np.ndarray | Arrays | None


def top(k: int, outputs: Arrays, feed: Arrays, labels: Labels = None, reference: Arrays | None = None) -> np.ndarray:
    """Return for each row the share of its classes that are among the first k.

    Args:
        k: How many may come first.
        outputs: Outputs of the model; scores ``[rows, ..., classes]``, or classes as whole numbers.
        feed: The feed; places that an ``attention_mask`` of the labels' shape hides do not count.
        labels: The right classes, as numbers or one-hot; None for the reference's.
        reference: Outputs of the reference.

    Raises:
        ValueError: When labels do not fit the scores.
    """
    name = chosen(outputs, _SCORES)
    scores = np.asarray(outputs[name])
    wanted = _labels(labels)
    if wanted is None:
        wanted = right(name, reference)
        wanted = wanted if _are_classes(wanted) else _ordered(wanted).argmax(axis=-1)
    if _are_classes(scores):
        found, wanted = _alike(scores, wanted)
        hit = found == wanted
    else:
        hit, wanted = _among(k, scores, wanted)
    counted = _counted(wanted, feed)
    if not counted.any():
        raise ValueError("every label is negative, or hidden by the mask")
    rows = [(hit[row], counted[row]) for row in range(len(hit)) if counted[row].any()]
    return np.array([np.mean(np.asarray(row)[mask]) for row, mask in rows])


top1 = partial(top, 1)
"""See `top`."""
top5 = partial(top, 5)
"""See `top`."""
tokens = partial(top, 1)
"""See `top`: scores ``[rows, length, tokens]``, or the tokens; labels stand where the scores that predict them do."""


def _labels(labels: Labels) -> np.ndarray | None:
    if isinstance(labels, np.ndarray) or labels is None:
        return labels
    return np.asarray(labels[chosen(labels, "label|target|class|y")])


def _are_classes(array: np.ndarray) -> bool:
    return array.dtype.kind in "biu"


def _ordered(scores: np.ndarray) -> np.ndarray:
    """Return scores in float64, NaN below all others."""
    wide = scores.astype(np.float64)
    return np.where(np.isnan(wide), -np.inf, wide)


def _alike(found: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return classes of both in one shape; missing ends of shorter sequences count as wrong."""
    if found.ndim == wanted.ndim == 2 and len(found) == len(wanted):
        length = max(found.shape[1], wanted.shape[1])
        pads = [((0, 0), (0, length - each.shape[1])) for each in (found, wanted)]
        return np.pad(found, pads[0], constant_values=-1), np.pad(wanted, pads[1], constant_values=0)
    if found.size != wanted.size:
        raise ValueError(f"labels of shape {list(wanted.shape)} do not fit classes of shape {list(found.shape)}")
    shape = found.shape or (1,)
    return found.reshape(shape), wanted.reshape(shape)


def _among(k: int, scores: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each label is among the k largest scores, and the labels in that shape."""
    if wanted.shape == scores.shape and wanted.size and wanted.ndim:  # one-hot
        wanted = _ordered(wanted).argmax(axis=-1)
    if scores.ndim > 2 and wanted.shape == (len(scores), *scores.shape[2:]):
        scores = np.moveaxis(scores, 1, -1)
    elif scores.ndim > 2 and wanted.size == len(scores) and scores.size == len(scores) * scores.shape[1]:
        scores = scores.reshape(len(scores), -1)  # of a network without its last Flatten
    scores = scores.reshape(1, -1) if scores.ndim == 1 else scores
    if wanted.size != scores[..., 0].size:
        raise ValueError(f"labels of shape {list(wanted.shape)} do not fit scores of shape {list(scores.shape)}")
    classes = scores.shape[-1]
    wanted = np.asarray(np.rint(wanted)).astype(np.int64).reshape(scores.shape[:-1])
    wanted = np.where((wanted == 255) & (wanted.ndim > 1) & (classes <= 255), -1, wanted)  # no class, in pictures
    if wanted.size and wanted.max() >= classes:
        raise ValueError(f"label {wanted.max()} is none of {classes} classes")
    place = np.maximum(wanted, 0)[..., None]
    own = np.take_along_axis(scores, place, axis=-1)
    ahead = _ordered(scores) > _ordered(own)
    ties = (scores == own) & (np.arange(classes) < place)
    return ((ahead | ties).sum(axis=-1) < k) & np.isfinite(own[..., 0]), wanted


def _counted(wanted: np.ndarray, feed: Arrays) -> np.ndarray:
    mask = feed.get("attention_mask")
    shown = np.asarray(mask) != 0 if mask is not None and np.shape(mask) == wanted.shape else True
    return np.asarray((wanted >= 0) & shown)
