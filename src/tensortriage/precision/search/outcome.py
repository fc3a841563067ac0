"""The result of a precision search as its document has it: error, minimality, points of the curve, the read-back."""

from collections.abc import Collection, Sequence

from tensortriage.model.model import Model
from tensortriage.precision.goal import GoalReading, GoalSample, MetricGoal, PrecisionGoal, mean_metric
from tensortriage.precision.low_precision_work import low_share
from tensortriage.precision.plan import ErrorFacts, Honoured, Point, PrecisionPlan
from tensortriage.precision.search.request import PrecisionMode, PrecisionRequest
from tensortriage.precision.selection.engine_confirmation import Settled, gap_db
from tensortriage.precision.selection.node_choice import NodeSearch, bisected, linear
from tensortriage.precision.selection.switchable_model import Choosable
from tensortriage.runs.analyses.plan_audit import PlanAudit, PrecisionMatch
from tensortriage.runs.case import command_line
from tensortriage.values.dtype import Precision


def facts(
    asked: GoalReading | None, settled: Settled, goal: PrecisionGoal, samples: Sequence[GoalSample], *, explains: bool
) -> ErrorFacts:
    """Return how good the outputs are.

    Args:
        asked: Reading of the target as the user named it; None when interrupted before.
        settled: The confirmed choice.
        goal: The goal for the outputs.
        samples: Feeds and golden outputs that judged candidates.
        explains: Whether rounding explains the target's error.
    """
    reading = settled.reading
    own = None
    if isinstance(goal, MetricGoal):
        own = mean_metric(goal.metric, samples, [sample.outputs for sample in samples])
    return ErrorFacts(
        goal=goal.words,
        as_asked=None if asked is None else asked.error,
        measured=None if reading is None else reading.error,
        predicted=None if settled.predicted is None else settled.predicted.error,
        gap_db=gap_db(reading, settled.predicted),
        ratio=reading.ratio if reading is not None and goal.limits else None,
        metric=None if reading is None else reading.metric,
        metric_reference=own,
        explained=explains,
    )


def minimality(mode: PrecisionMode, *, complete: bool, interrupted: bool) -> str:
    """Return the minimality of the kept nodes, in the word of documents."""
    if interrupted:
        return "budget"
    if mode is not PrecisionMode.AUTO:
        return "prefix"
    return "one-minimal" if complete else "budget"


def point(count: int, reading: GoalReading, *, measured: bool) -> Point:
    """Return a point of the curve of accuracy against number of kept nodes."""
    return Point(count, reading.error, reading.sqnr_db, reading.within, measured, reading.latency_ms, reading.metric)


def read_back(found: PlanAudit, kept: frozenset[str], *, lowered: Collection[str] = ()) -> Honoured:
    """Return an audit's result for kept and lowered nodes; by default all nodes that are not kept are lowered."""
    judged = [region for region in found.regions if region.match is not PrecisionMatch.NOT_JUDGED]
    narrower = [n for region in judged if region.match is PrecisionMatch.NARROWER for n in region.nodes if n in kept]
    wider = [n for region in judged if region.match is PrecisionMatch.WIDER for n in region.nodes if n not in kept]
    own = [name for name in wider if (name in lowered if lowered else not name.startswith("cast::"))]
    return Honoured(any(region.built for region in found.regions), len(judged), tuple(narrower), tuple(own))


def mode_words(request: PrecisionRequest) -> str:
    """Return how nodes were chosen, in the words of documents."""
    return request.mode.value + (" reverse" if request.reverse and request.mode is not PrecisionMode.AUTO else "")


def prefixes(request: PrecisionRequest, items: Sequence[str]) -> NodeSearch[list[str]]:
    """Return Polygraphy's mode as a search among nodes in topological order."""
    find = bisected if request.mode is PrecisionMode.BISECT else linear
    return find(items[::-1] if request.reverse else items)


def planned(
    request: PrecisionRequest, stage: Choosable, whole: Sequence[str], *, complete: bool, interrupted: bool
) -> PrecisionPlan:
    """Return the part of the result that does not depend on the judge.

    Args:
        request: The user's request.
        stage: Units of choice.
        whole: Nodes in the higher precision, with those between them, in order.
        complete: Whether each was seen to be needed.
        interrupted: Whether the user ended the search early.
    """
    return PrecisionPlan(
        kept=tuple(whole),
        builds=0,
        checks=0,
        error=ErrorFacts("not measured yet", None, None, None, None, None),
        precision=stage.precision.value,
        higher=Precision.FP32.value,
        asked="engine" if request.check is None else "check",
        mode=mode_words(request),
        minimality=minimality(request.mode, complete=complete, interrupted=interrupted),
        nodes=(),
        candidates=len(stage.items),
        fixed=stage.fixed,
        low_share=low_share(stage.model.graph, stage.specs, {*whole, *stage.fixed}),
        casts=None,
        interrupted=interrupted,
        model=str(request.model),
        sha256=stage.model.fingerprint,
        command=command_line(),
    )


def written(request: PrecisionRequest, made: Model) -> dict[str, str]:
    """Write the mixed model where it is needed, and return the files of the result."""
    if request.output is None:
        return {}
    made.save(request.output)
    return {"model": str(request.output), "precision": str(request.output.with_name("precision.json"))}
