"""Judging tensors of any command by the limits of healthy engines, where the user gives no tolerance.

An error below the rounding of a single fp32 result is within any limit. For the rest the model is evaluated, and the
target run, as far as `tensortriage.envelope.judge` needs that.
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.judgement.output_judge import OutputJudge
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.limits import AT_SIGHT, beside, judged_by
from tensortriage.inputs.feed import Feed
from tensortriage.model.inspect.output_parts import whole, with_parts
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.runs.questions.question import Question

if TYPE_CHECKING:
    from tensortriage.diagnose.state.investigation import Investigation

Arrays = Mapping[str, np.ndarray]


def investigation_of(question: Question, lab: Lab) -> "Investigation":
    """Return an investigation in a lab that knows the answers of all before it."""
    # A comparison seldom comes here, and all of an investigation is imported with these.
    from tensortriage.diagnose.state.investigation import Investigation

    return Investigation.begin(question, lab=lab.remembering)


class HealthyJudge:
    """Judges tensors by the limits of healthy engines.

    Args:
        model: The model whose tensors are compared.
        reference: The engine assumed to be right.
        target: The engine under suspicion; None for results saved earlier, which are judged as fp32.
        lab: The lab that asks engines.
        asked: Whether the target may be run for more than its results.
    """

    def __init__(
        self, model: Model, *, reference: EngineSpec, target: EngineSpec | None, lab: Lab, asked: bool = False
    ) -> None:
        self._model, self._reference, self._lab = model, reference, lab
        self._target = target or reference
        self._asked = asked and target is not None

    def judge(self, feed: Feed, metrics: Mapping[str, Metrics], references: Arrays) -> dict[str, Judgement]:
        """Judge the tensors of one feed.

        Args:
            feed: The feed they come from.
            metrics: Figures by value name, and of parts of outputs, which are not judged where no limit is known.
            references: The reference's arrays of the values that may need an evaluation.
        """
        judged = {name: judged_by(AT_SIGHT, figure) for name, figure in metrics.items()}
        judged = {n: each for n, each in judged.items() if each.within and not (metrics[n].exact and each.ratio)}
        if left := {name: figure for name, figure in metrics.items() if name not in judged}:
            judged |= self._evaluated(feed, left, references)
        return judged

    def _evaluated(self, feed: Feed, metrics: Mapping[str, Metrics], references: Arrays) -> dict[str, Judgement]:
        from tensortriage.diagnose.measurements.limits import limits_of

        question = Question(model=self._model, feeds=[feed], reference=self._reference, target=self._target)
        inv = investigation_of(question, self._lab)
        word = inv.precision.value
        inv, costs = _on_the_file(inv, feed, references, list(metrics))
        found = limits_of(inv, feed, metrics, apart=costs, asked=self._asked)
        limits = {name: beside(costs[name], limit) if name in costs else limit for name, limit in found.items()}
        return {n: judged_by(limits[n], figure, format_name=word) for n, figure in metrics.items() if n in limits}


def _on_the_file(
    inv: "Investigation", feed: Feed, references: Arrays, names: list[str]
) -> tuple["Investigation", Mapping[str, float]]:
    """Return the judge of a target whose file stores weights as integers, as in `diagnose`.

    Returns:
        An investigation of the model with the file's weights, and the cost of rounding these, by name. Where the
        weights are not the model's, an investigation of fp32, whose limits a file in integers does not keep. For every
        other target the given one, without costs.
    """
    if not resolve(inv.question.target).arranges_file:
        return inv, {}
    from tensortriage.diagnose.rungs.quantization.stored_weights import file_weights
    from tensortriage.runs.analyses.given_layouts import without_format

    found = file_weights(inv)
    if found is None or (found.verdict is None and found.question is None):
        return inv, {}
    if found.verdict is not None or found.question is None:
        return inv.about(dataclasses.replace(inv.question, target=without_format(inv.question.target))), {}
    parts = inv.setting(feed).parts
    wanted = whole(names, parts)
    own = inv.lab.values(inv.question.reference, found.question.model, feed, wanted)
    right, made = (with_parts({n: np.asarray(each[n]) for n in wanted}, parts) for each in (references, own))
    costs = {name: error_of(measure(right[name], made[name])) for name in names}
    return inv.about(found.question), costs


def output_judge(inv: "Investigation", feed: Feed) -> OutputJudge:
    """Return the judge of a search without a tolerance of the user's, which tests many pieces.

    Earlier measurements are known again, so that a resumed search gets the same answers. An output that is lost in the
    format fails: a reduction has to find out why.
    """
    from tensortriage.diagnose.measurements.judging import healthy_outputs
    from tensortriage.envelope.explanations import ROUNDED

    kept = inv.lab.derived(
        dict[str, float], "the error limit of a healthy engine at the outputs", inv.question.target, inv.model, feed
    )

    def measured() -> dict[str, float]:
        return kept.keep({name: limit.error for name, limit in healthy_outputs(inv, feed).items()})

    narrow = inv.precision in ROUNDED
    return OutputJudge(inv.question.tolerance, measured, narrow, kept.known() or {})
