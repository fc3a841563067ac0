"""Findings made after the ladder has ended: patterns of the error, accuracy, a repro and a remedy."""

import dataclasses

from tensortriage.compare.task_metric import TaskAccuracy
from tensortriage.diagnose.climb import ClimbResult
from tensortriage.diagnose.measurements.dissection import Dissection, dissection
from tensortriage.diagnose.state.verdict import Remedy, ReproFacts, VerdictKind
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.questions.question import Question
from tensortriage.workflows.diagnosis.accuracies import Accuracies, WantedFix
from tensortriage.workflows.diagnosis.fix_words import fix_words
from tensortriage.workflows.diagnosis.good_enough import sufficiency
from tensortriage.workflows.requests import DiagnoseRequest


@frozen_dataclass
class FoundAfter:
    """Findings made after the ladder has ended.

    Attributes:
        dissection: What the errors look like.
        sufficiency: As of `Verdict`.
        accuracy: As of `Verdict`.
        fix: As of `Verdict`.
        repro: As of `Verdict`.
        remedy: As of `Verdict`.
    """

    dissection: Dissection = dataclasses.field(default_factory=Dissection)
    sufficiency: tuple[str, ...] = ()
    accuracy: TaskAccuracy | None = None
    fix: str = ""
    repro: ReproFacts | None = None
    remedy: Remedy | None = None


def found_after(request: DiagnoseRequest, end: ClimbResult, asked: Question) -> FoundAfter:
    """Find the pattern of the error, whether it is good enough, a repro and a remedy.

    Args:
        request: The user's request.
        end: What the ladder came to.
        asked: The user's question.
    """
    inv, evidence, conclusion = end.investigation, end.evidence, end.conclusion
    errors = dissection(inv, evidence, conclusion)
    enough = sufficiency(inv, evidence) if conclusion.kind is VerdictKind.ROUNDING and evidence.results else ()
    metric, least = request.metric, request.metric_min
    accuracies = None if metric is None else Accuracies(inv, asked, metric, least, request.feeding)
    accuracy = None if accuracies is None else accuracies.compared()
    repro = remedy = None
    if conclusion.kind.exit_code == 1:
        # A fault takes imports that others need not.
        from tensortriage.workflows.diagnosis.remedy import remedy_of
        from tensortriage.workflows.diagnosis.reproduce import reproduction

        # One op is built in less time than a remedy, which is the whole model.
        repro = reproduction(inv, evidence, conclusion) if request.repro else None
        remedy = remedy_of(inv, evidence, conclusion, WantedFix(request.fix, accuracies, accuracy))
    if accuracy is not None and remedy is not None:
        accuracy = dataclasses.replace(accuracy, remedy=remedy.metric)
    return FoundAfter(errors, enough, accuracy, fix_words(inv, conclusion, remedy, request.fix), repro, remedy)
