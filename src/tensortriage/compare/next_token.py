"""Two sets of scores over a vocabulary, compared by their use: the next token, and how likely each was."""

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass

TOP = 5
"""Numbers of likeliest tokens that are compared, as accuracy is usually reported: top-1 and top-5."""


@frozen_dataclass
class NextToken:
    """The next token by two sets of scores.

    Attributes:
        divergence: Kullback-Leibler divergence of the target's probabilities from the reference's, in nats; the mean
            over the batch.
        top_agreement: Share of the reference's `TOP` likeliest tokens that are among the target's.
        reference: The reference's token, per row of the batch.
        target: The target's.
    """

    divergence: float
    top_agreement: float
    reference: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def same(self) -> bool:
        """Whether both choose the same tokens."""
        return self.reference == self.target


def compare_next(reference: np.ndarray, target: np.ndarray) -> NextToken:
    """Compare scores.

    Args:
        reference: The reference's scores, ``[batch, vocabulary]``, float64.
        target: The target's, of the same shape.

    The divergence is that of Kullback and Leibler (1951), ``sum p log(p / q)`` with the softmax of the scores.
    """
    ours, theirs = log_softmax(reference), log_softmax(target)
    with np.errstate(invalid="ignore", over="ignore"):
        divergence = float(np.where(ours > -np.inf, np.exp(ours) * (ours - theirs), 0.0).sum(axis=-1).mean())
    count = min(TOP, reference.shape[-1])
    best, also = (np.argsort(-scores, axis=-1, kind="stable")[:, :count] for scores in (reference, target))
    agreement = float(np.mean([len({*row} & {*other}) / count for row, other in zip(best, also, strict=True)]))
    first, chosen = reference.argmax(axis=-1), target.argmax(axis=-1)
    return NextToken(
        np.inf if np.isnan(divergence) else max(divergence, 0.0),
        agreement,
        tuple(map(int, first)),
        tuple(map(int, chosen)),
    )


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """Return the log-probabilities of scores along the last axis.

    Args:
        scores: Logits, ``[..., vocabulary]``, floating-point.
    """
    with np.errstate(invalid="ignore"):
        shifted = scores - scores.max(axis=-1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
