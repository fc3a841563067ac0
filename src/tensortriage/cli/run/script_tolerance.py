"""Judges outputs by a user's function."""

import numpy as np

from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.engines.base import Limits
from tensortriage.runs.scripts import COMPARE, ScriptFunction


class ScriptTolerance:
    """Judges by a user's function ``compare_outputs(name, reference, target) -> bool``.

    Args:
        script: ``FILE.py[:FUNCTION]``.
        limits: Bounds on every call.
    """

    def __init__(self, script: str, limits: Limits) -> None:
        self._script = script
        self._function = ScriptFunction(script, COMPARE, limits)

    def judge(self, name: str, metrics: Metrics, reference: np.ndarray, target: np.ndarray) -> Judgement:
        """See `Tolerance`."""
        within = self._function.truth(name, reference, target)
        return Judgement(within, self._script, 0.0 if within else float("inf"), Basis.USER)
