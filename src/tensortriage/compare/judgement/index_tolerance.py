"""Indices compared by place, as Polygraphy's ``--compare indices`` does: how far along its row has a value moved?

Rows are those of the last axis. A value that occurs several times is matched occurrence by occurrence. Polygraphy
leaves the last ``tolerance`` places of a row out altogether; here a value of theirs may be missing, since what came in
at the end may have pushed it out, but one that is there must be within the tolerance like all others.
"""

import dataclasses
import math

import numpy as np

from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.judgement.tolerance import Setting, setting_for
from tensortriage.compare.metrics.tensor_metrics import Metrics


@dataclasses.dataclass(frozen=True, slots=True)
class IndexTolerance:
    """Within when no value has moved farther along its row.

    Attributes:
        index_tolerance: Places a value may have moved.
    """

    index_tolerance: Setting = 0

    def judge(self, name: str, metrics: Metrics, reference: np.ndarray, target: np.ndarray) -> Judgement:
        """See `Tolerance`; the ratio is that of the value that moved farthest."""
        allowed = int(setting_for(self.index_tolerance, name, 0))
        limit = f"moved <= {allowed} places"
        if metrics.mismatches == 0:
            return Judgement(True, limit, 0.0, Basis.USER)
        farthest = max(
            (_farthest(ours, theirs, allowed) for ours, theirs in zip(_rows(reference), _rows(target), strict=True)),
            default=0.0,
        )
        ratio = farthest / allowed if allowed else math.inf if farthest else 0.0
        return Judgement(farthest <= allowed, limit, ratio, Basis.USER)


def _rows(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)


def _farthest(reference: np.ndarray, target: np.ndarray, allowed: int) -> float:
    """Return by how many places a value moved at most; inf for one that is missing from before the last places."""
    places: dict[object, list[int]] = {}
    for place, value in enumerate(target.tolist()):
        places.setdefault(value, []).append(place)
    farthest = 0.0
    for place, value in enumerate(reference.tolist()):
        if found := places.get(value):
            farthest = max(farthest, abs(found.pop(0) - place))
        elif place < len(reference) - allowed:
            return math.inf
    return farthest
