"""Why are the bad builds bad? By values beyond the format, by other kernels or fusions, or by one op.

Asked in this order: the overflow that emulated rounding shows where bad builds compute in the format; the tactic or
region that goes with failure, where that is one op; the op that is wrong on golden inputs in some builds of the
exploded model; and the last op of a small region.
"""

import dataclasses
import math
import time
from collections.abc import Sequence

from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.local_errors.local import local_errors
from tensortriage.diagnose.rungs.number_format.overflow import out_of_range
from tensortriage.diagnose.rungs.rung import Answer
from tensortriage.diagnose.rungs.variation.rebuilds import CHEAP_SECONDS, Build, result_of
from tensortriage.diagnose.state.confidence import BUILDS_UNTOLD, Confidence, blamed
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.errors import EngineError, ModelError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.search.statistics.association import Suspect, Trial, rank
from tensortriage.search.statistics.repeats import QUICK_RISK, runs_needed
from tensortriage.values.text import count, error_size, over_floor

MOST_CULPRITS = 3
"""Regions between which so few builds cannot decide: more of them are no answer."""

MOST_IN_REGION = 4
"""Nodes of a region whose last one stands for it: a product with the ops that engines fuse into it (bias, scale,
activation). A region that a compiler makes of half a model proves no more than that the builds differ."""

MOST_EXPLODED = 12
"""Exploded builds in which a bad op is looked for; 12 miss one that is in every fourth build with 3 %."""


@frozen_dataclass
class Cause:
    """Why some builds fail.

    Attributes:
        words: A clause for the summary, with the evidence.
        culprits: Ops to blame.
        confidence: Confidence of the verdict with these culprits.
        next: Commands that help against it.
        findings: Findings about values that leave the format's range.
    """

    words: str
    culprits: Sequence[Culprit] = ()
    confidence: Confidence | float = BUILDS_UNTOLD
    next: Sequence[str] = ()
    findings: Findings = dataclasses.field(default_factory=Findings)


def cause_of(inv: Investigation, evidence: Evidence, builds: Sequence[Build], bad: Sequence[bool]) -> Cause:
    """Find out why the bad builds are bad."""
    overflow = _overflow(inv, evidence, builds, bad)
    cause = _cause(inv, evidence, builds, bad, overflow.verdict)
    return dataclasses.replace(cause, findings=overflow.findings)


def _cause(
    inv: Investigation, evidence: Evidence, builds: Sequence[Build], bad: Sequence[bool], overflow: Conclusion | None
) -> Cause:
    trials = [Trial(frozenset(build.features), failed) for build, failed in zip(builds, bad, strict=True)]
    ranked = rank(trials)
    equals = [suspect for suspect in ranked if suspect.factor == ranked[0].factor]
    if overflow:
        run = f"; they run '{_region(equals[0])}' as {equals[0].item[1] or 'another region'}" if equals else ""
        words = f"; the failing ones overflow: {overflow.summary}{run}"
        return Cause(words, overflow.culprits, overflow.confidence, overflow.next)
    culprits = [_culprit(inv, suspect) for suspect in equals] if len(equals) <= MOST_CULPRITS else []
    named = tuple(culprit for culprit in culprits if culprit is not None)
    words = f"; the failing ones run '{_region(equals[0])}' as {equals[0].item[1] or 'another region'}" if named else ""
    if named and all(len(_nodes(inv, suspect)) == 1 for suspect in equals):
        return Cause(words, named, blamed(equals[0].probability))
    differ = words or (f"; they differ in {count(len(equals), 'region')}" if equals else "")
    alone = _alone(inv, evidence, sum(bad) / len(bad))
    if alone:
        return Cause(f"{differ}; {alone[0].op_type} '{alone[0].node}' is wrong in some: {alone[0].reason}", alone)
    if named:
        return Cause(words, named, blamed(equals[0].probability))
    return Cause(differ or "; the engine does not report their kernels")


def _region(suspect: Suspect[tuple[str, str]]) -> str:
    nodes = suspect.item[0].split(", ")
    return suspect.item[0] if len(nodes) < 4 else f"{nodes[0]} ... {nodes[-1]}"


def _overflow(inv: Investigation, evidence: Evidence, builds: Sequence[Build], bad: Sequence[bool]) -> Answer:
    """Return the range verdict on a bad build; None when the format holds every value."""
    if inv.precision not in ROUNDED:
        return Answer()
    failing = [result_of(inv, evidence, build) for build, failed in zip(builds, bad, strict=True) if failed]
    results = [result for result in failing if result is not None]
    if not results:
        return Answer()
    worst = max(results, key=lambda result: max(result.errors.values(), default=0.0))
    return out_of_range(inv, evidence.with_(results=(worst,)))


def _nodes(inv: Investigation, suspect: Suspect[tuple[str, str]]) -> list[str]:
    """Return the nodes of a suspect's region that the model has."""
    return [name for name in suspect.item[0].split(", ") if name in inv.model.graph]


def _culprit(inv: Investigation, suspect: Suspect[tuple[str, str]]) -> Culprit | None:
    """Return the last ONNX node of a region, whose value the region makes; None for a large region: any may be it."""
    names = _nodes(inv, suspect)
    if not names or len(names) > MOST_IN_REGION:
        return None
    node = inv.model.graph.node(names[-1])
    reason = f"{suspect.bad_with} failing and {suspect.good_with} passing builds run it as {suspect.item[1] or 'this'}"
    return Culprit(node.name, node.op_type, node.outputs[0], reason=reason)


def _alone(inv: Investigation, evidence: Evidence, rate: float) -> tuple[Culprit, ...]:
    """Build the exploded model until an op is wrong on golden inputs, so often as the rate of failure demands."""
    question = "which op is wrong in some builds?"
    times, started = runs_needed(rate, QUICK_RISK, limit=MOST_EXPLODED), time.perf_counter()
    wrong: list[Culprit] = []
    builds = 0
    try:
        while not wrong and builds < MOST_EXPLODED:  # a few builds tell their rate badly: more are made while cheap
            if builds >= times and time.perf_counter() - started > CHEAP_SECONDS:
                break
            local = local_errors(inv, evidence.feed, build=builds)
            builds += 1
            for value, words in local.misshapen.items():
                wrong += _wrong(inv, value, None, math.inf, f"its result '{value}' has {words}")
            for value in local.metrics:
                if local.over.get(value, 0.0) > 1.0:
                    error, ratio = local.error(value), local.floor_ratio(value)
                    words = f"its result is off by {error_size(error)}, {over_floor(ratio)}"
                    wrong += _wrong(inv, value, error, ratio or math.inf, words)
    except (EngineError, ModelError) as problem:
        inv.record.answered(question, f"unknown: {problem.message}")
        return ()
    wrong.sort(key=lambda culprit: -(culprit.floor_ratio or 0.0))
    place = f"{wrong[0].op_type} '{wrong[0].node}', in build" if wrong else "none that is wrong alone, in builds up to"
    inv.record.answered(question, f"{place} {builds} of the exploded graph", builds=builds)
    return tuple(wrong[:MOST_CULPRITS])


def _wrong(inv: Investigation, value: str, error: float | None, ratio: float, words: str) -> list[Culprit]:
    node = inv.model.graph.producer(value)
    if node is None:
        return []
    reason = f"on golden inputs {words}"
    return [Culprit(node.name, node.op_type, value, local_error=error, floor_ratio=ratio, reason=reason)]
