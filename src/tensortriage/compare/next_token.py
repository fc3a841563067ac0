"""Two sets of scores over a vocabulary, compared as what is made of them: the next token, and how likely each was."""

import dataclasses

import numpy as np

from tensortriage.compare.judgement.ranked import compare_extremes

TOP = 5
"""Tokens that are compared as the likeliest ones, as accuracy is usually told: top-1 and top-5."""


@dataclasses.dataclass(frozen=True, slots=True)
class NextToken:
    """What two sets of scores say about the next token.

    Attributes:
        divergence: Kullback-Leibler divergence of the target's probabilities from the reference's, in nats; the mean
            over the batch.
        top_agreement: Share of the reference's `TOP` likeliest tokens that are among the target's.
        reference: The reference's token, per row of the batch.
        target: The target's.
        margin: By how much the reference's first token leads its second, over how far a healthy engine may move the
            two; the smallest over the batch. Up to 1 either may win. None where no radius is known.
        tie: Whether the target's token is as good as the reference's within the radius; None where they are the same,
            or no radius is known.
    """

    divergence: float
    top_agreement: float
    reference: tuple[int, ...]
    target: tuple[int, ...]
    margin: float | None = None
    tie: bool | None = None

    @property
    def same(self) -> bool:
        """Whether both choose the same tokens."""
        return self.reference == self.target


def compare_next(reference: np.ndarray, target: np.ndarray, radius: np.ndarray | None = None) -> NextToken:
    """Compare scores.

    Args:
        reference: The reference's scores, ``[batch, vocabulary]``, float64.
        target: The target's, of the same shape.
        radius: How far each score may be off in a healthy engine, absolute, of the same shape; None if not known.

    The divergence is that of Kullback and Leibler (1951), ``sum p log(p / q)`` with the softmax of the scores.
    """
    ours, theirs = log_softmax(reference), log_softmax(target)
    with np.errstate(invalid="ignore", over="ignore"):
        divergence = float(np.where(ours > -np.inf, np.exp(ours) * (ours - theirs), 0.0).sum(axis=-1).mean())
    count = min(TOP, reference.shape[-1])
    best, also = (np.argsort(-scores, axis=-1, kind="stable")[:, :count] for scores in (reference, target))
    agreement = float(np.mean([len({*row} & {*other}) / count for row, other in zip(best, also, strict=True)]))
    first, chosen = reference.argmax(axis=-1), target.argmax(axis=-1)
    margin = tie = None
    if radius is not None:
        margin = lead(reference, radius)
        if not np.array_equal(first, chosen):
            tie = not compare_extremes(first, chosen, reference, axis=-1, radius=radius).mismatches
    return NextToken(
        np.inf if np.isnan(divergence) else max(divergence, 0.0),
        agreement,
        tuple(map(int, first)),
        tuple(map(int, chosen)),
        margin,
        tie,
    )


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


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """Return the logarithms of the probabilities that scores stand for, along the last axis.

    Args:
        scores: Logits, ``[..., vocabulary]``, floating-point.
    """
    with np.errstate(invalid="ignore"):
        shifted = scores - scores.max(axis=-1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
