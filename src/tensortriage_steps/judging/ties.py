"""Whether one token may win over another by rounding: scores, and how far a healthy engine may move each."""

import numpy as np

from tensortriage.envelope.sdk import ScoredChoice, compare_extremes


def is_tie(chosen: np.ndarray, other: np.ndarray, scores: np.ndarray, radius: np.ndarray) -> bool:
    """Return whether other tokens are as good as those chosen.

    Args:
        chosen: Tokens of the largest scores, ``[batch]``.
        other: Tokens of the largest of another engine's scores, ``[batch]``.
        scores: The scores of the first, ``[batch, vocabulary]``.
        radius: How far each may be off, absolute.
    """
    return not compare_extremes(chosen, other, scores, ScoredChoice(-1, radius)).mismatches


def lead(scores: np.ndarray, radius: np.ndarray) -> float:
    """Return by how much the best score leads the second best, over the sum of their radii; the smallest of all rows.

    Args:
        scores: ``[batch, vocabulary]``.
        radius: How far each may be off, absolute.
    """
    if scores.shape[-1] < 2:
        return float("inf")
    order = np.argsort(-scores, axis=-1, kind="stable")[:, :2]
    pair, slack = (
        np.take_along_axis(array, order, axis=-1) for array in (scores, np.broadcast_to(radius, scores.shape))
    )
    gap, allowed = pair[:, 0] - pair[:, 1], slack.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(allowed > 0, gap / allowed, np.where(gap > 0, np.inf, 0.0))
    return float(ratios.min())
