"""A relation evaluated by the model: which parts of which values are equal, and their largest healthy difference."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tensortriage.api import EngineSpec, Model
from tensortriage.envelope.sdk import CORRECTLY_ROUNDED, Lab, TensorStore, difference, healthy_values, within_limit
from tensortriage_steps.consistency.relations import EqualityClaim
from tensortriage_steps.consistency.views import EqualParts, views


@dataclasses.dataclass(frozen=True, slots=True)
class KeptPart:
    """Two parts of a value that the model makes equal, and by how much they may differ on a healthy engine.

    Attributes:
        parts: They.
        allowed: Largest relative RMS difference: a healthy engine's error in either, and the difference in the model's
            own evaluation.
    """

    parts: EqualParts
    allowed: float


class OwnEvaluation:
    """The model's own evaluation of both runs of a relation.

    Args:
        lab: The lab that asks engines.
        model: The model.
        relation: The claim.
        values: The wanted values, in topological order.
        target: The engine with the format and the hardware.

    Raises:
        EngineError: When the model cannot be evaluated.
        UsageError: Likewise.
    """

    def __init__(
        self,
        lab: Lab,
        model: Model,
        relation: EqualityClaim,
        values: Sequence[str],
        *,
        target: EngineSpec,
    ) -> None:
        self._relation = relation
        self._healthy = healthy_values(lab, model, relation.left, values, target=target)
        self._right: TensorStore = self._healthy.centre
        if relation.right is not relation.left:
            self._right = lab.values(CORRECTLY_ROUNDED, model, relation.right, values)

    def shapes(self, value: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the shapes of a value in the left run and in the right one."""
        return self._healthy.centre[value].shape, self._right[value].shape

    def exact(self, value: str) -> bool:
        """Return whether a value holds no floating-point numbers."""
        dtype = self._healthy.centre.spec(value).dtype
        return dtype is None or not dtype.is_float

    def strays(self, value: str, left: np.ndarray, right: np.ndarray) -> bool:
        """Return whether a value is outside the envelope of the model itself, in the left run or in the right one."""
        limit = self._healthy.limit(value).error
        runs = ((self._healthy.centre[value], left), (self._right[value], right))
        return not all(within_limit(difference(centre, array), limit) for centre, array in runs)

    def kept(self, value: str) -> list[KeptPart]:
        """Return the parts of a value that the model makes equal; none where it does not keep the claim."""
        left, right = self._healthy.centre[value], self._right[value]
        for candidate in views(self._relation, left, right):
            found = [self._kept(value, parts, left, right) for parts in candidate]
            if found and all(part is not None for part in found):
                return [part for part in found if part is not None]
        return []

    def _kept(self, value: str, parts: EqualParts, left: np.ndarray, right: np.ndarray) -> KeptPart | None:
        apart = difference(parts.left(left), parts.right(right))
        limit = self._healthy.limit(value, parts.left).error
        return KeptPart(parts, 2.0 * limit + apart) if within_limit(apart, limit) else None
