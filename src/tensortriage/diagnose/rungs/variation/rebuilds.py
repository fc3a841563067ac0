"""The deployed model built once more: figures of its outputs, and its kernels. Every build is answered once and kept.

Two builds of one model may differ on every engine that chooses kernels by timing, fills caches, or reads memory that
nobody has written. So builds are numbered, and each is an answer of its own.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import is_too_coarse, within_fp32
from tensortriage.compare.measured import compare_all
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.judging import judge_of, left_by
from tensortriage.diagnose.measurements.outputs import (
    FeedResult,
    OutputFigures,
    Unsound,
    deployed,
    judge,
    measured_outputs,
)
from tensortriage.diagnose.rungs.number_format.predicted import beyond_format
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.explanations import Explanation, Usual
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.analyses.tactics import features
from tensortriage.runs.observation.experiment import Experiment
from tensortriage.values.store import MemoryStore

CHEAP_SECONDS = 5.0
"""A build that takes no longer is made twice where once would do; further ones are made for so long together."""


Features = tuple[tuple[str, str], ...]
"""Pairs of a region's nodes and their kernel."""


@frozen_dataclass
class Build:
    """One build of the deployed model.

    Attributes:
        outputs: Figures of its outputs; None when it did not build or run, or they cannot be compared.
        moved: Largest relative difference of an output to the first build's; None when it did not run.
        features: The engine's choices in this build, such as kernels.
        seconds: How long making it took.
        problem: Why there are no figures; empty when there are.
    """

    outputs: OutputFigures | None
    moved: float | None
    features: Features = ()
    seconds: float = 0.0
    problem: str = ""


def first_build(inv: Investigation, evidence: Evidence) -> Build:
    """Return the build that was deployed."""
    return Build(deployed(inv, evidence.feed), 0.0, features((), inv.lab.plan(inv.question.target, inv.model)))


def rebuilds(inv: Investigation, evidence: Evidence, count: int) -> list[Build]:
    """Return the first ``count`` builds after the deployed one, making those that are not known yet.

    Raises:
        EngineError: When the deployed build does not run any more.
    """
    first = inv.deployed(evidence.feed)
    return [_built(inv, evidence, first, number, count) for number in range(1, count + 1)]


def _built(inv: Investigation, evidence: Evidence, first: Mapping[str, np.ndarray], number: int, count: int) -> Build:
    target, feed, what = inv.question.target, evidence.feed, f"building again, {number} of {count}"
    try:
        with inv.lab.session(target, inv.model, build=number):
            answer = inv.lab.answer(Experiment(engine=target, model=inv.model, feed=feed, build=number, what=what))
            ran = features((), inv.lab.plan(target, inv.model, build=number))
    except EngineError as error:
        return Build(None, None, problem=error.message or "it failed")
    outputs, seconds = answer.arrays, answer.build_seconds + answer.seconds
    try:
        figures = measured_outputs(inv, feed, outputs)
    except Unsound as problem:
        return Build(None, None, ran, seconds, str(problem))
    moved = compare_all(((name, outputs[name]) for name in figures.metrics), MemoryStore(first))
    farthest = math.inf if moved.misshapen else max(map(error_of, moved.metrics.values()), default=0.0)
    return Build(figures, farthest, ran, seconds)


def result_of(inv: Investigation, evidence: Evidence, build: Build) -> FeedResult | None:
    """Return the outputs of a build judged as the first build's were; None when it has none."""
    return judge(inv, evidence.feed, build.outputs, evidence.worst_feed.floors) if build.outputs else None


@frozen_dataclass
class JudgedBuilds:
    """Several builds, judged.

    Attributes:
        bad: Whether a build fails where others need not, build by build.
        explanations: Choices of only part of the builds, where these make all of them healthy.
    """

    bad: Sequence[bool]
    explanations: tuple[Explanation, ...] = ()

    @property
    def varies(self) -> bool:
        """Whether some are bad and others are not."""
        return len(set(self.bad)) > 1


def judged(inv: Investigation, evidence: Evidence, builds: Sequence[Build]) -> JudgedBuilds:
    """Return the builds with a judgement of each: whether it fails where others need not.

    If all fail the noise floor, as they do in a narrow format, the bad ones fail beyond the format's prediction and
    beyond the freedoms of the target's hardware: one build may keep sums in fp16, another not. Where its class is
    unknown, a single choice that is expected of some class has to explain all of them. If the format predicts nothing
    (it overflows), the bad ones lose the signal while others keep it.
    """
    results = [result_of(inv, evidence, build) for build in builds]
    fails = [result is None or not result.passes for result in results]
    if not all(fails):
        return JudgedBuilds(fails)
    beyond = [result is None or beyond_format(inv, result) for result in results]
    if len(set(beyond)) > 1 and inv.question.trusts_float64:
        builds_judge = judge_of(inv, evidence.worst_feed)
        habits = inv.question.hardware.has_habits
        for together in [builds_judge.freedoms(Usual.EXPECTED)] if habits else builds_judge.single():
            if not together or not all(each.is_expected_of_some(inv.precision) for each in together):
                continue  # what single engines were seen to do allows so much that it would excuse faults
            left = [
                failed and (result is None or bool(left_by(inv, result, together)))
                for failed, result in zip(beyond, results, strict=True)
            ]
            if not any(left):
                return JudgedBuilds(fails, together)
            if habits:
                beyond = left
    if len(set(beyond)) > 1:
        return JudgedBuilds(beyond)
    errors = [max(result.errors.values(), default=0.0) if result else math.inf for result in results]
    least = min(errors)
    lost = [is_too_coarse(error) and not within_fp32(error, least) for error in errors]
    return JudgedBuilds(lost if not is_too_coarse(least) and any(lost) else fails)
