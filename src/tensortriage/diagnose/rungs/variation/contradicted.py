"""Do later answers contradict the failure? Then they come from other builds, and it may be the builds that differ.

A contradiction is evidence before it is anything else: outputs that are wrong, and right once every tensor is marked; a
model that is wrong, and no op of it is alone; an op that is wrong alone in one build and right in another. Marking and
cutting also change which ops an engine fuses and which kernels it takes, so that each of the two questions is repeated,
in other builds, until one answer differs or the remaining chance is `MISSED`. Engines that declare their builds
identical are believed.
"""

from collections.abc import Callable

from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.in_context.marked_values import marked_figures
from tensortriage.diagnose.measurements.local_errors.local import Local, local_errors, suspicious
from tensortriage.diagnose.measurements.outputs import OutputFigures, judge
from tensortriage.diagnose.measurements.soundness import builds_vary
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.rungs.variation.intermittent import BUILDS_IN_DOUBT, OF_BUILDS, facts_of, varying
from tensortriage.diagnose.rungs.variation.rebuilds import first_build, judged, rebuilds
from tensortriage.diagnose.state.confidence import BUILDS_UNTOLD
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.search.statistics.repeats import MISSED, enough_of_both

AGAIN = "does it fail in every build?"
ALONE = "is it wrong in isolation in every build?"


@frozen_dataclass
class Contradiction:
    """A later answer against the failure of the deployed model.

    Attributes:
        reason: The contradiction, in words.
        stays: Whether another build, by its number, gives the same answer.
    """

    reason: str
    stays: Callable[[int], bool]


def asks_again(inv: Investigation) -> bool:
    """Return whether builds may vary and the user set no number of builds."""
    return inv.question.builds is None and builds_vary(inv) is not False


@rung(
    AGAIN,
    reads=("results", "in_context", "in_context_judged", "local", "builds_compared", "wrong_together"),
    gives=OF_BUILDS,
    cost="up to 5 builds",
    ends=(VerdictKind.INTERMITTENT,),
)
def contradicted(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Where later answers contradict the deployed run, build both again until it is clear whether builds differ."""
    against = _contradiction(inv, evidence)
    if against is None or not asks_again(inv):
        return None
    wrong, right = enough_of_both(evidence.builds_compared, 1, MISSED)
    try:
        builds = [first_build(inv, evidence), *rebuilds(inv, evidence, wrong - 1)]
        found = judged(inv, evidence, builds)
        facts = facts_of(builds, found.bad)
        if found.varies:
            answer = f"no: {sum(found.bad)} of {len(builds)} fail"
            inv.record.answered(AGAIN, f"{answer}; asked because {against.reason}", **facts)
            return varying(inv, evidence, builds, found.bad)
        stayed = next((number for number in range(1, right) if not against.stays(number)), right)
    except EngineError as error:
        inv.record.answered(AGAIN, f"unknown: {error.message}")
        return None
    if stayed < right:
        words = f"{against.reason} in {stayed} of {stayed + 1} builds"
        inv.record.answered(AGAIN, f"unknown: in all of {len(builds)}, but {words}", **facts)
        return varying(inv, evidence, builds, found.bad, f"builds of the same model contradict each other: {words}")
    answer = f"yes: in all of {len(builds)}; asked because {against.reason}, in all of {right} builds"
    inv.record.answered(AGAIN, answer, **facts)
    return Answer(findings=Findings(builds_compared=len(builds), builds_choose=found.explanations))


def _contradiction(inv: Investigation, evidence: Evidence) -> Contradiction | None:
    """Return the evidence against the failure of the deployed model; None when there is none."""
    marked = OutputFigures(evidence.in_context or {}, judged=evidence.in_context_judged)
    if not evidence.worst_feed.passes and _are_right(inv, evidence, marked):
        if evidence.local is not None:  # asked about already, before any op ran alone
            return None
        return Contradiction(
            "with every tensor marked the outputs are right",
            lambda build: _are_right(inv, evidence, _marked(inv, evidence, build)),
        )
    if evidence.wrong_together:  # that explains why every op is right alone
        return None
    local = evidence.local
    if local is not None and local.metrics and not _wrong_alone(local):
        return Contradiction(
            "every op is right alone",
            lambda build: not _wrong_alone(local_errors(inv, evidence.feed, build=build)),
        )
    return None


def _marked(inv: Investigation, evidence: Evidence, build: int) -> OutputFigures:
    figures = marked_figures(inv, evidence.feed, build=build).figures
    return OutputFigures(figures.metrics, judged=figures.judged)


def _are_right(inv: Investigation, evidence: Evidence, marked: OutputFigures) -> bool:
    """Return whether the outputs pass in a build with every tensor marked, as far as it shows them all."""
    outputs = evidence.worst_feed.metrics
    if not set(outputs) <= set(marked.metrics):
        return False
    figures = OutputFigures({name: marked.metrics[name] for name in outputs}, judged=marked.judged)
    return judge(inv, evidence.feed, figures, evidence.worst_feed.floors).passes


def _wrong_alone(local: Local) -> list[str]:
    """Return the values that are wrong on golden operands."""
    return [*local.misshapen, *suspicious(local)]


def wrong_alone_in_some(inv: Investigation, evidence: Evidence, culprit: Culprit) -> Conclusion | None:
    """Before an op is blamed: is it wrong in isolation in every build? Only that op is built, which costs least.

    Where one of these is right, the graph of all ops alone decides: the op may run otherwise with no others next to it.
    """
    seen = evidence.builds_compared + 1 + bool(evidence.in_context)
    if not asks_again(inv) or seen >= BUILDS_IN_DOUBT:
        return None
    builds, wrong, only = range(1, 1 + BUILDS_IN_DOUBT - seen), 1, [culprit.node]
    try:
        if all(_wrong_alone(local_errors(inv, evidence.feed, only=only, build=build)) for build in builds):
            inv.record.answered(ALONE, f"yes: '{culprit.node}' in all of {len(builds) + 1}", builds=len(builds) + 1)
            return None
        for build in builds:
            if culprit.value not in _wrong_alone(local_errors(inv, evidence.feed, build=build)):
                words = f"{culprit.op_type} '{culprit.node}' is wrong alone in {wrong} of {wrong + 1} builds"
                inv.record.answered(ALONE, f"no: {words}", builds=wrong + 1, failing=wrong)
                return Conclusion(
                    VerdictKind.INTERMITTENT,
                    BUILDS_UNTOLD,
                    f"builds of the same model contradict each other on {inv.question.target}: {words}",
                    culprits=[culprit],
                    next=[triage_command(inv.question, "debug build", "--target", str(inv.question.target))],
                )
            wrong += 1
    except EngineError as error:
        inv.record.answered(ALONE, f"unknown: {error.message}")
        return None
    inv.record.answered(
        ALONE, f"yes, among all ops: '{culprit.node}' in all of {wrong} builds; not on its own", builds=wrong
    )
    return None
