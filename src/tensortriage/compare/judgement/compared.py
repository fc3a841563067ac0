"""One tensor as reference and target computed it, with everything that a judge may need."""

import dataclasses
from typing import Self

import numpy as np

from tensortriage.compare.metrics.tensor_metrics import Metrics, measure


@dataclasses.dataclass(frozen=True, slots=True)
class Compared:
    """A tensor of the reference, the target's of the same shape, and their figures.

    Attributes:
        reference: The tensor taken as right.
        target: The tensor under suspicion.
        metrics: Target measured against reference.
    """

    reference: np.ndarray
    target: np.ndarray
    metrics: Metrics

    @classmethod
    def of(cls, reference: np.ndarray, target: np.ndarray) -> Self:
        """Measure two tensors.

        Args:
            reference: What is right.
            target: Of the same shape, of any type that compares with it.
        """
        return cls(reference, target, measure(reference, target))
