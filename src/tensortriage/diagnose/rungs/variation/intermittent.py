"""Is it equal from build to build? Engines choose kernels by timing them, so a wrong one may be in some builds only.

A target that fails is built again, whatever it reports of itself, and every build is judged as the first was. So is one
that passes, or fails by no more than its format explains, unless its engine declares its builds identical. If some fail
and others do not, that is the verdict; the choices that only failing builds make are named (see
`tensortriage.search.statistics.association`), and why they are bad. How often follows from `MISSED`, for a fault in
every second build, and from the cost of a build compared with the whole; beyond that, `contradicted` asks again where
later answers leave doubt.
"""

import time
from collections.abc import Sequence

from tensortriage.compare.judgement.within import is_minor, is_too_coarse, within_fp32
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.soundness import BUILDS_WITH_THE_REST, affords, builds_vary
from tensortriage.diagnose.rungs.number_format.predicted import beyond_format
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.rungs.variation.intermittent_cause import cause_of
from tensortriage.diagnose.rungs.variation.rebuilds import (
    CHEAP_SECONDS,
    Build,
    Features,
    first_build,
    judged,
    rebuilds,
)
from tensortriage.diagnose.rungs.variation.run_order import of_order, run_order
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.engines.capabilities import RunsGivenEngines
from tensortriage.engines.registry import resolve
from tensortriage.errors import EngineError
from tensortriage.runs.analyses.tactics import feature_digest
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.search.statistics.repeats import MISSED, runs_needed
from tensortriage.values.text import error_size

QUESTION = "are the outputs equal from build to build?"

CHEAP_TIME_SHARE = 0.1
"""So is one that takes no more than this share of the remaining budget."""

TIME_SHARE = 0.2
"""Further builds take no longer than `CHEAP_SECONDS` together, or than this share of the time that was spent before."""

BUILDS_IN_DOUBT = 1 + runs_needed(0.5, MISSED)
"""Builds after which an engine with equal builds so far no longer counts as one whose every second build may differ."""

MOST_SHOWN = 8


OF_BUILDS = (
    "floors",
    "excess",
    "in_context",
    "in_context_moved",
    "in_context_judged",
    "kept",
    "builds_compared",
    "builds_fail",
    "builds_choose",
)
"""Verdicts of comparing builds."""


@rung(
    QUESTION,
    reads=("results", "local"),
    gives=OF_BUILDS,
    cost="1 to 7 builds",
    ends=(VerdictKind.INTERMITTENT, VerdictKind.NONDETERMINISTIC_RUN),
)
def build_to_build(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Build again and compare; the verdict is that builds differ, if some fail and others pass."""
    try:
        again = _built_again(inv, evidence)
        if not again:
            return None
        builds = [first_build(inv, evidence), *again]
    except EngineError as error:
        inv.record.answered(QUESTION, f"unknown: {error.message}")
        return None
    found = judged(inv, evidence, builds)
    bad, facts = found.bad, facts_of(builds, found.bad)
    if found.varies and len(inv.question.feeds) > 1 and bad[0] and not any(bad[1:]):  # the first has run other feeds
        order = run_order(inv, evidence.feed, evidence.worst_feed.floors.fp32)
        if order.words:
            return Answer(of_order(inv, order, f"1 of {len(bad)} sessions, which ran other feeds before, is wrong"))
    if found.varies:
        inv.record.answered(QUESTION, f"no: {sum(bad)} of {len(bad)} builds fail", **facts)
        return varying(inv, evidence, builds, bad)
    moved, kinds = max(build.moved or 0.0 for build in builds), facts["different_plans"]
    count = f"{len(builds)} builds"
    off = evidence.worst_feed.worst_output()[1]
    if all(bad) and is_too_coarse(moved) and not is_minor(moved, off):
        inv.record.answered(QUESTION, f"no: {count} fail, and differ by {error_size(moved)} among themselves", **facts)
        words = (
            f"every build of the same model gives other numbers: {count} differ by {error_size(moved)}, and all fail"
        )
        return varying(inv, evidence, builds, bad, words)
    still = within_fp32(moved, max(evidence.worst_feed.floors.fp32.values(), default=0.0))
    if problems := [build.problem for build in builds if build.problem]:
        answer = f"no: of {count}, some fail to run ({problems[0]})"
    elif moved == 0.0:
        answer = f"yes: the outputs of {count} are bit-equal"
    else:
        place = "below the floor" if still else f"and all {'fail' if bad[0] else 'pass'}"
        answer = f"{'nearly' if still else 'no'}: {count} differ by {error_size(moved)}, {place}"
    if isinstance(kinds, int) and kinds > 1:
        answer += f"; {kinds} different plans"
    if found.explanations:
        answer += f"; some use a freedom: {'; '.join(each.words for each in found.explanations)}"
    inv.record.answered(QUESTION, answer, **facts)
    return Answer(findings=Findings(builds_compared=len(builds), builds_choose=found.explanations))


def _seconds_left(inv: Investigation) -> float:
    return inv.lab.budget.left if inv.lab.budget.seconds is not None else 0.0


def _built_again(inv: Investigation, evidence: Evidence) -> list[Build]:
    """Build as often as the user requests; else as often as is cheap, where the target is wrong or builds may differ.

    An engine without a declaration on its builds may be one whose builds differ.

    Raises:
        EngineError: When the deployed build does not run any more.
    """
    engine, options = resolve(inv.question.target).engine, inv.question.target.options
    if isinstance(engine, RunsGivenEngines) and engine.without_file(options) is not None:
        return []
    if inv.question.builds is not None:
        return rebuilds(inv, evidence, inv.question.builds)
    passes, vary = evidence.worst_feed.passes, builds_vary(inv)
    if vary is False and not any(beyond_format(inv, result) for result in evidence.results):
        return []
    how_often = f"how often {inv.question.target} is built again"
    kept = inv.lab.derived(int, how_often, inv.question.target, inv.model, evidence.feed)
    if (known := kept.known()) is not None:  # the more, the longer the first time took
        return rebuilds(inv, evidence, known)
    if not affords(inv, BUILDS_WITH_THE_REST):
        inv.record.unasked(QUESTION)
        return []
    before = time.perf_counter() - inv.lab.budget.started
    allowed = max(CHEAP_SECONDS, TIME_SHARE * before)
    expected = inv.lab.tally.seconds_a_build(inv.question.target.name)
    builds: list[Build] = []
    for number in range(1, BUILDS_IN_DOUBT):
        once = number == 1 and (vary or not passes)
        twice = number == 2 and not passes and expected <= max(CHEAP_SECONDS, CHEAP_TIME_SHARE * _seconds_left(inv))
        further = vary is not False and sum(build.seconds for build in builds) + expected <= allowed
        if not (once or twice or further):
            break
        builds = rebuilds(inv, evidence, number)
        expected = builds[-1].seconds
        if vary is False and not passes and _all_equal(inv, evidence, builds):
            break
    kept.keep(len(builds))
    return builds


def _all_equal(inv: Investigation, evidence: Evidence, builds: Sequence[Build]) -> bool:
    """Return whether builds equal the deployed one, by the bits of the outputs and by the plans."""
    plan = first_build(inv, evidence).features
    return all(build.moved == 0.0 and not build.problem and build.features == plan for build in builds)


def facts_of(builds: Sequence[Build], bad: Sequence[bool]) -> dict[str, object]:
    """Return the step's answer about several builds."""
    plans = [build.features for build in builds]
    return {
        "builds": len(bad),
        "failing": sum(bad),
        "moved": max(build.moved or 0.0 for build in builds),
        "different_plans": len({feature_digest(one) for one in plans if one}),
        "differing_regions": _differing(plans),
        "problems": [build.problem for build in builds if build.problem],
    }


def _differing(builds: Sequence[Features]) -> list[str]:
    """Return in words the first few regions that not every build runs."""
    known = [frozenset(build) for build in builds if build]
    unequal = frozenset().union(*known) - frozenset.intersection(*known) if known else frozenset()
    return [f"{_ends(region)}: {how or 'another region'}" for region, how in sorted(unequal)][:MOST_SHOWN]


def _ends(region: str) -> str:
    nodes = region.split(", ")
    return region if len(nodes) < 4 else f"{nodes[0]} ... {nodes[-1]} ({len(nodes)} nodes)"


def varying(
    inv: Investigation, evidence: Evidence, builds: Sequence[Build], bad: Sequence[bool], words: str = ""
) -> Answer:
    """Return the verdict on builds of which some fail, or whose reports contradict each other, with the reason."""
    cause = cause_of(inv, evidence, builds, bad)
    words = words or f"{sum(bad)} of {len(bad)} builds of the same model fail"
    verdict = Conclusion(
        VerdictKind.INTERMITTENT,
        cause.confidence,
        f"{words} on {inv.question.target}{cause.words}",
        culprits=cause.culprits,
        next=[*cause.next, triage_command(inv.question, "debug build", "--target", str(inv.question.target))],
    )
    return Answer(verdict, {**cause.findings, "builds_compared": len(builds), "builds_fail": all(bad)})
