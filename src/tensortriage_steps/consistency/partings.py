"""Where two runs part that the model makes equal: beyond the radii of both, in some of the parts that are compared."""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tensortriage.envelope.sdk import TensorStore, difference, within_limit
from tensortriage_steps.consistency.evaluations import OwnEvaluation


@dataclasses.dataclass(frozen=True, slots=True)
class Parting:
    """A value with unequal parts that should be equal.

    Attributes:
        value: Its name.
        difference: Largest relative RMS difference of two such parts.
        allowed: The largest healthy difference there.
        rows: Rows of the right run that differ; empty where parts are no rows.
    """

    value: str
    difference: float
    allowed: float
    rows: tuple[int, ...] = ()


def partings(own: OwnEvaluation, left: TensorStore, right: TensorStore, values: Sequence[str]) -> Iterator[Parting]:
    """Yield the values that part on the engine, in order.

    Args:
        own: The model's own evaluation of both runs.
        left: Values of the one run on the engine.
        right: Values of the other.
        values: Names to look at.
    """
    for name in values:
        if name in left and name in right and (parting := _parting(own, name, left, right)) is not None:
            yield parting


def _parting(own: OwnEvaluation, name: str, left: TensorStore, right: TensorStore) -> Parting | None:
    if not (kept := own.kept(name)):
        return None
    one, other = np.asarray(left[name]), np.asarray(right[name])
    if (one.shape, other.shape) != own.shapes(name):
        return Parting(name, math.inf, 0.0)
    worst, rows = (0.0, 0.0), []
    for part in kept:
        apart = difference(part.parts.left(one), part.parts.right(other))
        if not within_limit(apart, part.allowed):
            worst = max(worst, (apart, part.allowed))
            rows += [] if part.parts.row is None else [part.parts.row]
    return Parting(name, *worst, tuple(rows)) if worst[0] > 0.0 else None


def worst(found: Iterable[Parting]) -> Parting | None:
    """Return the one farthest beyond what is allowed; None for none."""
    return max(found, key=lambda parting: parting.difference / max(parting.allowed, 1e-30), default=None)
