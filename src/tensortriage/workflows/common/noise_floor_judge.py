"""Judging every compared tensor: by the user's tolerances when given, else by the noise floor of the target's format.

Floors cost extra runs (float64, emulated rounding), so they are measured only for tensors that need them: one whose
error is below the rounding of a single fp32 result is within any floor.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.compare.judgement.relative_error import LOST, MATCH_FACTOR, gap_allowance_db, least_floor
from tensortriage.compare.judgement.tolerance import Judgement, NoiseFloorTolerance
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.values.dtype import Precision


class FloorJudge:
    """Judges by noise floors.

    Args:
        model: The model whose tensors are compared.
        reference: The engine taken as right.
        target: The engine under suspicion; None for results saved earlier, which are judged as fp32.
        folder: For temporary files.
    """

    def __init__(self, model: Model, *, reference: EngineSpec, target: EngineSpec | None, folder: Path) -> None:
        self._model = model
        self._reference = reference
        self._target = target or reference
        self._folder = folder

    def judge(
        self,
        feed: Feed,
        metrics: Mapping[str, Metrics],
        references: Mapping[str, np.ndarray],
    ) -> dict[str, Judgement]:
        """Judge the tensors of one feed.

        Args:
            feed: The feed they come from.
            metrics: Figures by value name.
            references: The reference's arrays of the values that may need a floor.
        """
        judged: dict[str, Judgement] = {}
        sure = MATCH_FACTOR * least_floor(Precision.FP32)
        cheap = NoiseFloorTolerance({name: sure * signal(figure) for name, figure in metrics.items()}, factor=1.0)
        for name, figure in metrics.items():
            judgement = cheap.judge(name, figure)
            if judgement.within or figure.exact:
                judged[name] = judgement
        open_names = [name for name in metrics if name not in judged]
        if open_names:
            judged |= self._by_floor(feed, open_names, metrics, references)
        return judged

    def _by_floor(
        self,
        feed: Feed,
        names: Sequence[str],
        metrics: Mapping[str, Metrics],
        references: Mapping[str, np.ndarray],
    ) -> dict[str, Judgement]:
        # A comparison seldom comes here, and all of an investigation is imported with these.
        from tensortriage.diagnose.measurements.floors import floors_of
        from tensortriage.diagnose.state.investigation import Investigation, Question
        from tensortriage.envelope.floors import ROUNDED
        from tensortriage.runs.case import Case
        from tensortriage.values.store import MemoryStore

        golden = MemoryStore({name: references[name] for name in names})
        question = Question(model=self._model, feeds=[feed], reference=self._reference, target=self._target)
        with Case(self._folder / "floors") as case:
            inv = Investigation(question, case)
            try:
                inv.adopt(feed, golden)
                floors = floors_of(
                    inv, self._model, feed, names, golden=golden, specs=inv.specs(feed), what="the floors"
                )
            finally:
                inv.close()
        limits, lost = {}, set[str]()
        for name in names:
            fp32 = MATCH_FACTOR * floors.fp32.get(name, 0.0)
            rounding = floors.target.get(name, 0.0) * 10 ** (gap_allowance_db(metrics[name].count) / 20)
            limit = fp32 if inv.precision not in ROUNDED else max(fp32, rounding)
            if LOST < limit < math.inf:
                limit = LOST
                lost.add(name)
            limits[name] = limit * signal(metrics[name]) if math.isfinite(limit) else math.inf
        tolerance = NoiseFloorTolerance(limits, factor=1.0)
        judged = {name: tolerance.judge(name, metrics[name]) for name in names}
        words = f"rms <= {LOST:.0%} of the signal, though rounding to {inv.precision.value} may cost more"
        return judged | {name: dataclasses.replace(judged[name], limit=words) for name in lost}


def signal(metrics: Metrics) -> float:
    """Return the RMS of the reference; 0 when no element is finite on both sides."""
    return metrics.reference_rms if metrics.compared else 0.0
