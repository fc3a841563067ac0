"""Judging every compared tensor: by the user's tolerances when given, else by the noise floor of the target's format.

Floors cost extra runs (float64, emulated rounding), so they are measured only for tensors that need them: one whose
error is below the rounding of a single fp32 result is within any floor. What the target's hardware is free to choose is
evaluated only where a tensor is beyond its floor.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.judgement.relative_error import error_of, least_floor
from tensortriage.compare.judgement.within import Limit, fp32_limit, is_lost, judged_by
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError, ModelError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision
from tensortriage.values.store import MemoryStore, TensorStore

if TYPE_CHECKING:
    from tensortriage.diagnose.state.investigation import Investigation


class FloorJudge:
    """Judges by noise floors.

    Args:
        model: The model whose tensors are compared.
        reference: The engine taken as right.
        target: The engine under suspicion; None for results saved earlier, which are judged as fp32.
        lab: Where it is asked for floors.
    """

    def __init__(self, model: Model, *, reference: EngineSpec, target: EngineSpec | None, lab: Lab) -> None:
        self._model = model
        self._reference = reference
        self._target = target or reference
        self._lab = lab

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
        sure = Limit(fp32_limit(least_floor(Precision.FP32)), Basis.FLOOR)
        for name, figure in metrics.items():
            judgement = judged_by(sure, figure)
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
        from tensortriage.diagnose.measurements.output_limits import output_limits

        golden: TensorStore = MemoryStore({name: references[name] for name in names})
        asked = self._investigation(feed)
        words = asked.precision.value
        inv, own, costs = _of_the_file(asked, feed, golden)
        limits = _and(costs, output_limits(inv, feed, names, golden=own, figures=None if costs else metrics))
        judged = {name: judged_by(limits[name], metrics[name], format_name=words) for name in names}
        if failing := [name for name in names if not judged[name].within]:
            judged |= self._by_chance(inv, feed, {name: metrics[name] for name in failing}, costs, words)
        return judged

    def _by_chance(
        self, inv: "Investigation", feed: Feed, failing: Mapping[str, Metrics], costs: Mapping[str, float], words: str
    ) -> dict[str, Judgement]:
        """Judge outputs that are beyond one draw of rounding by several, as `diagnose` does; empty where it would not.

        Values inside the model are not judged that way: who has them shown looks for the op.
        """
        from tensortriage.diagnose.measurements.output_limits import limits_by_chance

        if not {*failing} <= {spec.name for spec in self._model.outputs}:
            return {}
        if any(is_lost(error_of(figure)) for figure in failing.values()):  # whatever it may cost, it does not pass
            return {}
        try:
            limits = _and(costs, limits_by_chance(inv, feed, failing))
        except (EngineError, ModelError, UsageError):
            return {}
        return {name: judged_by(limit, failing[name], format_name=words) for name, limit in limits.items()}

    def _investigation(self, feed: Feed) -> "Investigation":
        from tensortriage.workflows.common.passing_investigation import passing_investigation

        return passing_investigation(self._lab, self._model, feed, reference=self._reference, target=self._target)


def _of_the_file(
    inv: "Investigation", feed: Feed, golden: TensorStore
) -> tuple["Investigation", TensorStore, Mapping[str, float]]:
    """Return by what a target is judged whose file keeps weights as integers, as `diagnose` judges it.

    Returns:
        An investigation of the model with the file's weights, its values, and what rounding these costs by name. Where
        the weights are not the model's, one of fp32, whose limits a file in integers does not keep. As it was given,
        without costs, for every other target.
    """
    from tensortriage.diagnose.measurements.evidence import Evidence
    from tensortriage.diagnose.rungs.quantization.stored_weights import stored_weights
    from tensortriage.runs.given_layouts import without_format

    found = stored_weights(inv, Evidence())
    if found.verdict is not None:
        return inv.about(dataclasses.replace(inv.question, target=without_format(inv.question.target))), golden, {}
    if found.question is None:
        return inv, golden, {}
    model, names = found.question.model, list(golden.names())
    own = inv.lab.values(inv.question.reference, model, feed, names)
    costs = {name: error_of(measure(np.asarray(golden[name]), np.asarray(own[name]))) for name in names}
    return inv.about(found.question), own, costs


def _and(costs: Mapping[str, float], limits: Mapping[str, Limit]) -> dict[str, Limit]:
    """Return limits of what departs from a file as limits of what departs from the model that the file rounds."""
    return {
        name: Limit(costs[name] + limit.error, Basis.FORMAT) if name in costs else limit
        for name, limit in limits.items()
    }
