"""Is it equal from build to build? Engines choose kernels by timing them, so a wrong one may be in some builds only.

The deployed model is built again, and every build is judged as the first was. If some fail and others do not, that is
the verdict, and what the failing builds run differently is named (see `tensortriage.search.statistics.association`);
finding out which of it is the cause takes more builds, and is what ``triage debug build`` does.
"""

import dataclasses
import math

import numpy as np

from tensortriage.compare.judgement.relative_error import MATCH_FACTOR, error_of, say
from tensortriage.compare.measured import compare_all
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import judge
from tensortriage.diagnose.measurements.soundness import mismatched, run_once
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit, Verdict, VerdictKind
from tensortriage.engines.base import VariesBuilds
from tensortriage.engines.registry import create
from tensortriage.errors import EngineError
from tensortriage.runs.single_build import build_once
from tensortriage.runs.tactics import feature_digest, features
from tensortriage.search.statistics.association import Suspect, Trial, rank
from tensortriage.values.store import MemoryStore

REBUILDS_OF_PASSING = 1
REBUILDS_OF_FAILING = 2
MOST_SHOWN = 8
MOST_CULPRITS = 3
"""Regions that cannot be told apart by so few builds: more of them are no answer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rebuild:
    """One build more.

    Attributes:
        fails: Whether it fails, judged as the first build was.
        error: Largest relative error against the reference; infinite when it did not build or run.
        moved: Largest relative difference of an output to the first build's; None when it did not run.
        features: Pairs of a region's nodes and what runs them.
        problem: Why it did not build or run; empty when it did.
    """

    fails: bool
    error: float
    moved: float | None
    features: tuple[tuple[str, str], ...]
    problem: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Rebuilds:
    """The builds after the first.

    Attributes:
        first: What the first build is like.
        builds: The others.
    """

    first: tuple[tuple[str, str], ...]
    builds: tuple[Rebuild, ...]


def build_to_build(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Build again and compare; builds of which some fail and others do not are the verdict."""
    wanted = _wanted(inv, passes=evidence.worst.passes)
    if not wanted:
        return None
    since = inv.mark()
    question = "is it equal from build to build?"
    key = inv.key(inv.question.target, inv.model, evidence.feed, "rebuilds", wanted)
    try:
        found = inv.case.checks.remember(key, f"{wanted} rebuilds", Rebuilds, lambda: _rebuilt(inv, evidence, wanted))
    except EngineError as error:
        inv.answered(question, f"unknown: {error.message}", since=since)
        return None
    fails = [not evidence.worst.passes, *(build.fails for build in found.builds)]
    moved = max((build.moved for build in found.builds if build.moved is not None), default=0.0)
    kinds = len({feature_digest(one) for one in (found.first, *(b.features for b in found.builds)) if one})
    facts = {
        "builds": len(fails),
        "failing": sum(fails),
        "moved": moved,
        "different_plans": kinds,
        "differing_regions": _differing([found.first, *(build.features for build in found.builds)]),
    }
    if len(set(fails)) > 1:
        inv.answered(question, f"no: {sum(fails)} of {len(fails)} builds fail", since=since, **facts)
        return _intermittent(inv, evidence, found, fails)
    told = f"{len(fails)} builds"
    limit = MATCH_FACTOR * max(evidence.worst.floors.fp32.values(), default=0.0)
    if moved == 0.0:
        answer = f"yes: the outputs of {told} are bit-equal"
    else:
        place = "below the floor" if moved <= limit else f"and all {'fail' if fails[0] else 'pass'}"
        answer = f"{'nearly' if moved <= limit else 'no'}: {told} differ by {say(moved)}, {place}"
    if kinds > 1:
        answer += f"; {kinds} different plans"
    inv.answered(question, answer, since=since, **facts)
    return None


def _differing(builds: list[tuple[tuple[str, str], ...]]) -> list[str]:
    """Return what only some builds run, in words; the first few."""
    known = [frozenset(build) for build in builds if build]
    some = frozenset().union(*known) - frozenset.intersection(*known) if known else frozenset()
    return [f"{_ends(region)}: {how or 'another region'}" for region, how in sorted(some)][:MOST_SHOWN]


def _ends(region: str) -> str:
    nodes = region.split(", ")
    return region if len(nodes) < 4 else f"{nodes[0]} ... {nodes[-1]} ({len(nodes)} nodes)"


def _wanted(inv: Investigation, *, passes: bool) -> int:
    if inv.question.builds is not None:
        return inv.question.builds
    engine = create(inv.question.target)
    if not isinstance(engine, VariesBuilds) or not engine.builds_vary(inv.question.target.options):
        return 0
    return REBUILDS_OF_PASSING if passes else REBUILDS_OF_FAILING


def _rebuilt(inv: Investigation, evidence: Evidence, wanted: int) -> Rebuilds:
    target, feed = inv.question.target, evidence.feed
    first = {name: np.array(array) for name, array in run_once(inv, target, inv.model, feed).items()}
    plan = inv.runner(target, inv.model).plan()
    builds = []
    for number in range(wanted):
        inv.listener.progress(f"building again, {number + 1} of {wanted}")
        builds.append(_rebuild(inv, evidence, first))
    return Rebuilds(features((), plan), tuple(builds))


def _rebuild(inv: Investigation, evidence: Evidence, first: dict[str, np.ndarray]) -> Rebuild:
    inv.budget.check()
    feed, golden = evidence.feed, inv.golden_outputs(evidence.feed)
    built = build_once(
        inv.question.target,
        inv.model,
        [feed],
        workspace=inv.workspace,
        limits=inv.budget.within(inv.question.limits),
        tally=inv.tally,
    )
    if not built.outcome.ok:
        return Rebuild(True, math.inf, None, (), built.outcome.message)
    outputs = built.outputs[feed.name]
    if problem := mismatched({name: golden[name] for name in evidence.worst.metrics}, outputs):
        return Rebuild(True, math.inf, None, features((), built.plan), problem)
    named = [(name, outputs[name]) for name in evidence.worst.metrics]
    result = judge(inv, feed, compare_all(named, golden).metrics, evidence.worst.floors)
    moved = compare_all(named, MemoryStore(first)).metrics
    return Rebuild(
        not result.passes,
        max(result.errors.values(), default=0.0),
        max(map(error_of, moved.values()), default=0.0),
        features((), built.plan),
    )


def _intermittent(inv: Investigation, evidence: Evidence, found: Rebuilds, fails: list[bool]) -> Verdict:
    likely = [found.first, *(build.features for build in found.builds)]
    ranked = rank([Trial(frozenset(one), failed) for one, failed in zip(likely, fails, strict=True)])
    equals = [suspect for suspect in ranked if suspect.factor == ranked[0].factor]
    culprits = [_culprit(inv, suspect) for suspect in equals] if len(equals) <= MOST_CULPRITS else []
    if culprits:
        place = f"; the failing ones run '{equals[0].item[0]}' as {equals[0].item[1] or 'another region'}"
    elif equals:
        place = f"; they differ in {len(equals)} regions"
    else:
        place = "; the engine does not tell what it runs differently"
    return inv.verdict(
        VerdictKind.INTERMITTENT,
        0.5 + 0.5 * equals[0].probability if culprits else 0.95,
        f"{sum(fails)} of {len(fails)} builds of the same model fail on {inv.question.target}{place}",
        culprits=[culprit for culprit in culprits if culprit is not None],
        next=[inv.command("debug build", "--target", str(inv.question.target))],
    )


def _culprit(inv: Investigation, suspect: Suspect[tuple[str, str]]) -> Culprit | None:
    """Return the last ONNX node of a region, whose value the region makes."""
    names = [name for name in suspect.item[0].split(", ") if name in inv.model.graph]
    if not names:
        return None
    node = inv.model.graph.node(names[-1])
    seen = f"{suspect.bad_with} failing and {suspect.good_with} passing builds run it as {suspect.item[1] or 'this'}"
    return Culprit(node.name, node.op_type, node.outputs[0], reason=seen)
