"""When are the outputs of a mixed-precision candidate good enough? One reading per candidate gives its distance.

Everything is relative to a limit, so that outputs of any scale, several samples and a user's own tolerance can be
weighed against each other: a ratio of 1 is just good enough. Noise of independent roundings adds in power, so ratios
add as squares; therefore each node's own ratio predicts that of a choice of nodes.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.judgement.relative_error import error_of, sqnr_db
from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed, feed_digest
from tensortriage.runs.check_cache import digest
from tensortriage.runs.task_metric import TaskMetric

Arrays = Mapping[str, np.ndarray]


@frozen_dataclass
class GoalSample:
    """A feed with the outputs expected on it."""

    feed: Feed
    outputs: Arrays


@frozen_dataclass
class GoalReading:
    """The reading of one candidate on all samples.

    Attributes:
        within: Whether it is good enough.
        ratio: Largest error over its limit; for a task metric, which limits no tensor, the largest relative error.
        error: Largest relative RMS error of an output.
        elements: Elements of that output.
        output: The output where the ratio is largest.
        sample: The sample where it is.
        ratios: The ratio of every output of every sample, in order.
        metric: Mean of the task metric; None without one.
        failure: How the engine failed; empty when it ran.
        latency_ms: Median time of a run; None when not measured.
    """

    within: bool
    ratio: float
    error: float
    elements: int
    output: str
    sample: str
    ratios: tuple[float, ...]
    metric: float | None = None
    failure: str = ""
    latency_ms: float | None = None

    @property
    def sqnr_db(self) -> float:
        """Signal to noise ratio of the worst output, in dB."""
        return sqnr_db(self.error)


def identity_of(samples: Sequence[GoalSample], goal: "PrecisionGoal") -> str:
    """Return a digest of everything that readings depend on, besides engine and candidate."""
    own = goal.metric.identity_on(sample.feed for sample in samples) if isinstance(goal, MetricGoal) else ""
    return digest([[sample.feed.digest, feed_digest(sample.outputs)] for sample in samples], goal.words, own)


def failed(message: str) -> GoalReading:
    """Return the reading of a candidate that the engine could not build or run."""
    return GoalReading(False, math.inf, math.inf, 0, "", "", (), failure=message)


@frozen_dataclass
class ErrorGoal:
    """The relative RMS error of every output is at most so much.

    Attributes:
        limit: Limit by output; of outputs that are compared exactly it is the share of unequal elements.
        words: The goal, for people and for the cache.
        limits: Whether ratios are relative to a limit, so that 1 is good enough.
    """

    limit: Mapping[str, float]
    words: str
    limits: bool = True

    def judge(self, samples: Sequence[GoalSample], results: Sequence[Arrays]) -> GoalReading:
        """Return how good the results are, one per sample."""
        entries = measured(samples, results)
        ratios = [_over(error, self.limit[name]) for _, name, error, _ in entries]
        return _reading(samples, entries, ratios, within=max(ratios) <= 1.0)


@frozen_dataclass
class ToleranceGoal:
    """Every output is within the user's tolerance.

    Attributes:
        tolerance: The tolerance that every output has to be within.
        words: The goal, for people and for the cache.
        limits: Whether ratios are relative to a limit, so that 1 is good enough.
    """

    tolerance: Tolerance
    words: str
    limits: bool = True

    def judge(self, samples: Sequence[GoalSample], results: Sequence[Arrays]) -> GoalReading:
        """Return how good the results are, one per sample."""
        entries = measured(samples, results)
        judged = [self._judged(samples[number], results[number], name, m) for number, name, _, m in entries]
        ratios = [judgement.ratio for judgement in judged]
        return _reading(samples, entries, ratios, within=all(judgement.within for judgement in judged))

    def _judged(self, sample: GoalSample, result: Arrays, name: str, metrics: Metrics | None) -> Judgement:
        if metrics is None:
            return Judgement(False, "the output must exist", math.inf, Basis.EQUALITY)
        return self.tolerance.judge(name, metrics, sample.outputs[name], result[name])


@frozen_dataclass
class MetricGoal:
    """The mean of a task metric over all samples is at least so much.

    Attributes:
        metric: The metric; higher is better.
        least: The smallest mean that will do.
        words: The goal, for people and for the cache.
        limits: Whether ratios are relative to a limit, so that 1 is good enough.
    """

    metric: TaskMetric
    least: float
    words: str
    limits: bool = False

    def judge(self, samples: Sequence[GoalSample], results: Sequence[Arrays]) -> GoalReading:
        """Return how good the results are, one per sample."""
        entries = measured(samples, results)
        value = mean_metric(self.metric, samples, results)
        reading = _reading(samples, entries, [error for _, _, error, _ in entries], within=value >= self.least)
        return dataclasses.replace(reading, metric=value)


PrecisionGoal = ErrorGoal | ToleranceGoal | MetricGoal
"""The goal for the outputs."""


def mean_metric(metric: TaskMetric, samples: Sequence[GoalSample], results: Sequence[Arrays]) -> float:
    """Return the mean of a task metric over samples."""
    pairs = zip(samples, results, strict=True)
    return metric.mean((result, sample.feed, sample.outputs) for sample, result in pairs)


Entry = tuple[int, str, float, Metrics | None]
"""Number of the sample, output, relative error, figures (None where the output has no counterpart to compare)."""


def measured(samples: Sequence[GoalSample], results: Sequence[Arrays]) -> list[Entry]:
    """Return the error of every output of every sample; infinite where it is missing or has another shape."""
    entries: list[Entry] = []
    for number, (sample, result) in enumerate(zip(samples, results, strict=True)):
        for name, reference in sample.outputs.items():
            if name not in result or result[name].shape != reference.shape:
                entries.append((number, name, math.inf, None))
                continue
            metrics = measure(reference, result[name])
            entries.append((number, name, error_of(metrics), metrics))
    return entries


def _reading(
    samples: Sequence[GoalSample], entries: Sequence[Entry], ratios: Sequence[float], *, within: bool
) -> GoalReading:
    worst = max(range(len(ratios)), key=ratios.__getitem__)
    number, output, _, metrics = entries[worst]
    return GoalReading(
        within=within,
        ratio=ratios[worst],
        error=max(error for _, _, error, _ in entries),
        elements=metrics.count if metrics else 0,
        output=output,
        sample=samples[number].feed.name,
        ratios=tuple(ratios),
    )


def _over(error: float, limit: float) -> float:
    if error == 0.0:
        return 0.0
    return error / limit if limit > 0.0 else math.inf
