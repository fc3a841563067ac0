"""Compares a target's decisions: outputs behind an ArgMax, a TopK or a suppression of boxes, for ``triage run``."""

from collections.abc import Mapping

import numpy as np

from tensortriage.compare.comparison import Row
from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.judgement.ranked import RankedComparison
from tensortriage.compare.judgement.relative_error import RELATIVE_RMS, error_of, measure_of, ratio_of
from tensortriage.compare.judgement.within import within_limit
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.envelope.limits import Limit
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.inspect.decisions import decisions_behind
from tensortriage.model.ir.graph import Node
from tensortriage.runs.lab import Lab
from tensortriage.runs.questions.question import Question
from tensortriage.values.text import magnitude
from tensortriage.workflows.common.judged import investigation_of

Arrays = Mapping[str, np.ndarray]


@frozen_dataclass
class DecidedOutput:
    """One output that depends on decisions.

    Attributes:
        metrics: Figures against the reference's results for the target's decisions.
        judgement: Whether decisions and output are within their limits.
        measure: Name of ``figure``.
        figure: How far it is off.
        note: The decision, in words.
    """

    metrics: Metrics
    judgement: Judgement
    measure: str
    figure: float
    note: str


def decided_outputs(
    question: Question, lab: Lab, *, golden: Arrays, outputs: Arrays, asked: bool
) -> dict[str, DecidedOutput]:
    """Compare the outputs that depend on decisions.

    Args:
        question: The model and engines of both sides, with one feed; its reference is asked to continue from the
            target's decisions.
        lab: The lab that asks engines.
        golden: The reference's values, by name.
        outputs: The target's.
        asked: Whether the target may be run for decisions that no output shows; not where results were saved earlier.

    Returns:
        By name; empty when nothing is decided, or the target's decision is unknown.
    """
    names, model = [name for name in golden if name in outputs], question.model
    if not decisions_behind(model.graph, names) or all(np.array_equal(golden[name], outputs[name]) for name in names):
        return {}
    from tensortriage.diagnose.measurements.decided import follow

    inv, ask = investigation_of(question, lab), (question.target, model) if asked else None
    decided = follow(inv, question.feeds[0], golden=golden, outputs=outputs, ask=ask)
    if decided is None:
        return {}
    noise = f"{inv.precision.value}'s rounding of the scores"
    found = {}
    for name, metrics in decided.metrics.items():
        value, worst = decided.worst(name)
        floors = decided.floors
        limit = floors.limit(name, metrics.count)
        found[name] = _output(metrics, worst, limit, noise, "" if value == name else f"follows from '{value}': ")
    return found


def row_of(
    value: str,
    node: Node | None,
    metrics: Metrics,
    judgement: Judgement | None,
    decided: DecidedOutput | None,
    module: str = "",
) -> Row:
    """Return the row of one tensor, of a node of some module, judged either separately or by decisions."""
    place = (value, node.name if node else "", node.op_type if node else "")
    if decided is not None:
        return Row(*place, metrics, decided.judgement, decided.measure, decided.figure, decided.note, module)
    assert judgement is not None
    return Row(*place, metrics, judgement, measure_of(metrics), error_of(metrics), module=module)


def _output(metrics: Metrics, worst: RankedComparison, limit: Limit, noise: str, origin: str) -> DecidedOutput:
    error, note = error_of(metrics), (origin + worst.in_words(noise)) if worst.differing or metrics.exact else ""
    if worst.mismatches:
        judgement = Judgement(False, f"ties within {noise}", worst.worst_margin, Basis.DECISION)
        return DecidedOutput(metrics, judgement, worst.measure, worst.share, note)
    if metrics.exact and not metrics.mismatches:
        judgement = Judgement(True, f"ties within {noise}", worst.worst_margin, Basis.DECISION)
        return DecidedOutput(metrics, judgement, worst.measure, 0.0, note)
    if metrics.exact:
        judgement = Judgement(False, "equal once decided", float("inf"), Basis.EQUALITY)
        return DecidedOutput(metrics, judgement, measure_of(metrics), error, note)
    words = f"rms <= {magnitude(limit.error)} of the signal once decided"
    judgement = Judgement(within_limit(error, limit.error), words, ratio_of(error, limit.error) or 0.0, limit.basis)
    return DecidedOutput(metrics, judgement, RELATIVE_RMS, error, note)
