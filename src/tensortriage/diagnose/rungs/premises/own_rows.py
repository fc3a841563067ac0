"""Is the target at one with itself? Where it passes so far, rows that the model makes equal are put to it.

Data that were given have one batch size and one order of rows; the fault of a kernel for another size does not show on
them. Batches on which the target contradicts itself are looked into as if they had been given as data.
"""

import dataclasses

from tensortriage.diagnose.consistency.relations import ROWS, EqualityClaim, row_relations
from tensortriage.diagnose.consistency.self_check import ClaimOutcome, SelfAnswer, SelfCheck
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.outputs import FeedResult, Unsound, deployed, judge, output_floors
from tensortriage.diagnose.measurements.soundness import builds_vary
from tensortriage.diagnose.rungs.number_format.predicted import beyond_format
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.generated.batch_rows import batch_axes, gather_rows
from tensortriage.runs.observation.experiment import Experiment, Measurement
from tensortriage.values.text import count

QUESTION = "do equal rows get equal results?"

SLOW_BUILD_SECONDS = 5.0
"""Engines that build for a batch size build again for each; where that takes longer, only the size given is asked."""


@dataclasses.dataclass(frozen=True, slots=True)
class SelfAnswers:
    """What became of the claims, in the order asked; remembered in the case."""

    answers: tuple[SelfAnswer, ...]


@rung(QUESTION, reads=("results",), gives=("results",), cost="some ten runs")
def contradictions(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Add the results of batches on which the target contradicts itself; not asked where it fails already."""
    if inv.question.tolerance is not None or any(beyond_format(inv, result) for result in evidence.results):
        return None
    try:
        claims = _claims(inv)
        if not claims:
            return None
        answers = _answers(inv, claims)
    except (EngineError, UsageError) as error:
        inv.answered(QUESTION, f"unknown: {error.message}")
        return None
    broken = [answer for answer in answers if answer.outcome == ClaimOutcome.BROKEN.value]
    not_held = [answer for answer in answers if answer.outcome != ClaimOutcome.HOLDS.value]
    answer = "; ".join(f"{each.question} {each.answer}" for each in (broken or not_held))
    tests = ", ".join(each.relation.replace("-", " ") for each in answers)
    inv.answered(QUESTION, answer or f"yes ({count(len(answers), 'test')}: {tests})", answers=answers)
    names = {name for each in broken for name in (each.left, each.right)}
    feeds = {feed.name: feed for claim in claims for feed in (claim.left, claim.right) if feed.name in names}
    results: list[FeedResult] = []
    for feed in feeds.values():
        try:
            results.append(judge(inv, feed, deployed(inv, feed), output_floors(inv)))
        except (EngineError, Unsound):  # then the others tell
            continue
    return Answer(findings=Findings(results=(*evidence.results, *results)))


def _claims(inv: Investigation) -> list[EqualityClaim]:
    axes = batch_axes(inv.model.inputs)
    own = axes.rows_in(inv.question.feeds[0]) if axes is not None else 0
    if axes is None or not own:
        return []
    if (_deployed(inv).build_seconds > SLOW_BUILD_SECONDS or _would_be_replaced(inv)) and axes.fixed is None:
        axes = dataclasses.replace(axes, fixed=own)
    wanted = axes.fixed or max(ROWS, own)
    rows = gather_rows(inv.model, inv.question.feeds, axes, wanted)
    return row_relations(rows, whole=False) if len(rows.rows) > 1 else []


def _would_be_replaced(inv: Investigation) -> bool:
    """Say whether feeding another batch size would replace the deployed engine by one that may differ from it."""
    return _deployed(inv).builds_made > 0 and builds_vary(inv) is not False


def _deployed(inv: Investigation) -> Measurement:
    """Return what came of the first run, which has the deployed build in it; the same when the case is resumed."""
    return inv.lab.answer(Experiment(engine=inv.question.target, model=inv.model, feed=inv.question.feeds[0]))


def _answers(inv: Investigation, claims: list[EqualityClaim]) -> tuple[SelfAnswer, ...]:
    def ask() -> SelfAnswers:
        check = SelfCheck(inv.lab, inv.model, inv.question.target, at_sight=True)
        return SelfAnswers(tuple(map(check.ask, claims)))

    key = inv.lab.key(
        inv.question.target, inv.model, claims[0].left, "equal rows", [claim.right.name for claim in claims]
    )
    return inv.lab.case.checks.remember(key, f"equal rows on {inv.question.target}", SelfAnswers, ask).answers
