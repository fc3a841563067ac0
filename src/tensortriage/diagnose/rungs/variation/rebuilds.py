"""The deployed model built once more: what its outputs are like, and what it runs. Every build is asked once and kept.

Two builds of one model may differ on every engine that chooses kernels by timing, fills caches, or reads memory that
nobody has written. So builds are numbered, and each is an answer of its own.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import within_fp32
from tensortriage.compare.measured import compare_all, in_words
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.output_limits import chosen_by_hardware
from tensortriage.diagnose.measurements.outputs import (
    FeedResult,
    OutputFigures,
    Unsound,
    deployed,
    judge,
    measured_outputs,
)
from tensortriage.diagnose.measurements.soundness import run_once
from tensortriage.diagnose.rungs.number_format.predicted import beyond_format
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.runs.single_build import build_once
from tensortriage.runs.tactics import features
from tensortriage.values.store import MemoryStore

CHEAP_SECONDS = 5.0
"""A build that takes no longer is made twice where once would do; further ones are made for so long together."""

WORTHLESS = 0.1
"""Relative error above which a build among better ones is bad even where the format predicts anything at all (an
emulated overflow): less than 20 dB of the signal are left."""

Features = tuple[tuple[str, str], ...]
"""Pairs of a region's nodes and what runs them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Build:
    """One build of the deployed model.

    Attributes:
        outputs: Figures of its outputs; None when it did not build or run, or they cannot be compared.
        moved: Largest relative difference of an output to the first build's; None when it did not run.
        features: What it runs.
        problem: Why there are no figures; empty when there are.
        seconds: Wall time of build and run.
    """

    outputs: OutputFigures | None
    moved: float | None
    features: Features = ()
    problem: str = ""
    seconds: float = 0.0


def first_build(inv: Investigation, evidence: Evidence) -> Build:
    """Return the build that was deployed."""
    return Build(deployed(inv, evidence.feed), 0.0, features((), inv.runner(inv.question.target, inv.model).plan()))


def rebuilds(inv: Investigation, evidence: Evidence, count: int) -> list[Build]:
    """Return the first ``count`` builds after the deployed one, making those that are not known yet.

    Raises:
        EngineError: When the deployed build does not run any more.
    """
    builds: list[Build] = []
    first: dict[str, np.ndarray] = {}
    for number in range(count):
        key = inv.key(inv.question.target, inv.model, evidence.feed, "rebuild", number, *in_words(inv.tolerances))
        known = inv.case.checks.get(key, Build)
        if known is None:
            first = first or {n: np.array(a) for n, a in deployed_run(inv, evidence).items()}
            inv.progress(f"building again, {number + 1} of {count}")
            known = _built(inv, evidence, first)
            inv.case.checks.put(key, f"build {number + 1} after the first", known, seconds=known.seconds)
        builds.append(known)
    return builds


def deployed_run(inv: Investigation, evidence: Evidence) -> Mapping[str, np.ndarray]:
    """Run the deployed build, which is kept open, on the feed that is looked into."""
    return run_once(inv, inv.question.target, inv.model, evidence.feed)


def _built(inv: Investigation, evidence: Evidence, first: Mapping[str, np.ndarray]) -> Build:
    inv.budget.check()
    feed = evidence.feed
    built = build_once(
        inv.question.target,
        inv.model,
        [feed],
        workspace=inv.workspace,
        limits=inv.budget.within(inv.question.limits),
        tally=inv.tally,
    )
    if not built.outcome.ok:
        return Build(None, None, (), built.outcome.message or "it failed", built.seconds)
    outputs, ran = built.outputs[feed.name], features((), built.plan)
    try:
        figures = measured_outputs(inv, feed, outputs)
    except Unsound as problem:
        return Build(None, None, ran, str(problem), built.seconds)
    moved = compare_all(((name, outputs[name]) for name in figures.metrics), MemoryStore(first))
    farthest = math.inf if moved.misshapen else max(map(error_of, moved.metrics.values()), default=0.0)
    return Build(figures, farthest, ran, "", built.seconds)


def result_of(inv: Investigation, evidence: Evidence, build: Build) -> FeedResult | None:
    """Return the outputs of a build judged as the first build's were; None when it has none."""
    return judge(inv, evidence.feed, build.outputs, evidence.worst.floors) if build.outputs else None


def bad_ones(inv: Investigation, evidence: Evidence, builds: Sequence[Build]) -> list[bool]:
    """Say of every build whether it fails where others need not.

    If all fail the noise floor, as in a narrow format they do, those are bad that fail beyond what the format predicts
    and beyond what the target's class of hardware is expected to choose: one build may keep sums in fp16, another not.
    If the format predicts nothing (it overflows), those are bad that lose the signal while others keep it.
    """
    results = [result_of(inv, evidence, build) for build in builds]
    fails = [result is None or not result.passes for result in results]
    if not all(fails):
        return fails
    beyond = [result is None or beyond_format(inv, result) for result in results]
    if len(set(beyond)) > 1:
        allowed = chosen_by_hardware(inv, evidence.feed, list(evidence.worst.errors))
        beyond = [
            failed and (result is None or beyond_format(inv, _widened(result, allowed)))
            for failed, result in zip(beyond, results, strict=True)
        ]
    if len(set(beyond)) > 1:
        return beyond
    errors = [max(result.errors.values(), default=0.0) if result else math.inf for result in results]
    least = min(errors)
    lost = [not error <= WORTHLESS and not within_fp32(error, least) for error in errors]
    return lost if least < WORTHLESS and any(lost) else fails


def _widened(result: FeedResult, allowed: Mapping[str, float]) -> FeedResult:
    """Return outputs with predictions that are at least so large."""
    floors = result.floors
    target = {name: max(error, allowed.get(name, 0.0)) for name, error in floors.target.items()}
    return dataclasses.replace(result, floors=dataclasses.replace(floors, target=target))
