"""Whether an output of the whole model fails: by the user's tolerance, else by the error of a healthy engine.

Measuring a floor costs runs of the model; an error that no healthy fp32 engine could make needs none.
"""

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Self

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.compare.judgement.within import certainly_fails, within_healthy
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class Compared:
    """A tensor of the reference, the target's of the same shape, and their figures.

    Attributes:
        reference: The tensor assumed to be right.
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
            reference: The right tensor.
            target: Tensor of the same shape, of any type that compares with it.
        """
        return cls(reference, target, measure(reference, target))


@dataclasses.dataclass
class OutputJudge:
    """Judges outputs of the whole model.

    Attributes:
        tolerance: The user's own; None to judge by floors.
        measure: Measures the limits of all outputs, as relative errors; called when one is needed for the first time.
        narrow: Whether the target's format is narrow, so that no error fails before the cost of the format is measured.
        limits: Limits known so far.
    """

    tolerance: Tolerance | None
    measure: Callable[[], dict[str, float]]
    narrow: bool = False
    limits: dict[str, float] = dataclasses.field(default_factory=dict)

    def error(self, metrics: Metrics) -> float:
        """Return the relative error of a tensor."""
        return error_of(metrics)

    def failing(
        self, outputs: Mapping[str, Compared], parts: Mapping[str, Compared] = MappingProxyType({})
    ) -> frozenset[str]:
        """Return the outputs that fail; of those that may be within their floor only when none fails for sure.

        Args:
            outputs: The outputs.
            parts: Parts that outputs are composed of; those without a limit of their own are noise, and not judged.
        """
        if self.tolerance is not None:
            return frozenset(name for name, pair in outputs.items() if not self._tolerated(name, pair))
        errors = {name: error_of(pair.metrics) for name, pair in outputs.items()}
        sure = frozenset(name for name, error in errors.items() if not self.narrow and certainly_fails(error))
        if sure or not any(errors.values()):
            return sure
        if not self.limits:
            self.limits = self.measure()
        errors |= {name: error_of(pair.metrics) for name, pair in parts.items() if name in self.limits}
        return frozenset(n for n, error in errors.items() if not within_healthy(error, self.limits.get(n, 0.0)))

    def excuses(self, output: str, pair: Compared) -> bool:
        """Return whether an error is within the tolerance, or within the floor when that is known."""
        if self.tolerance is not None:
            return self._tolerated(output, pair)
        return within_healthy(error_of(pair.metrics), self.limits.get(output, 0.0))

    def _tolerated(self, output: str, pair: Compared) -> bool:
        assert self.tolerance is not None
        return self.tolerance.judge(output, pair.metrics, pair.reference, pair.target).within
