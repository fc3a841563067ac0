"""Judging saved comparisons again by other limits, from the numbers that were kept, without any engine.

`tensortriage.compare.judgement.tolerance` alone decides whether a saved number is within its limit.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.judgement.tolerance import (
    ErrorStat,
    PolygraphyTolerance,
    ThresholdKind,
    ThresholdTolerance,
    Tolerance,
    by_statistic,
    setting_for,
)
from tensortriage.errors import DataError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.files.accuracy_results import AVERAGE, PER_SAMPLE, AccuracyEntry, AccuracyPair, AccuracyResult
from tensortriage.workflows.comparison.saved_accuracy import CLASS_OF, SIMPLE, SavedAccuracy, with_limits

WORDS: Mapping[str, str] = MappingProxyType({
    SIMPLE: "simple", "L2Result": "l2", "CosineSimilarityResult": "cosine_similarity", "PsnrResult": "psnr",
    "SnrResult": "snr", "PerceptualMetricsResult": "perceptual_metrics", "": "verdicts without numbers",
})  # fmt: skip
"""The word users know for each class of saved entries."""
_JUDGED_AS: Mapping[str, ThresholdKind] = MappingProxyType({
    # Class of the entry -> the threshold that decides. What is called PSNR is a level in dB like SNR; LPIPS is a
    # distance like L2.
    "L2Result": ThresholdKind.L2, "PerceptualMetricsResult": ThresholdKind.L2,
    "CosineSimilarityResult": ThresholdKind.COSINE_SIMILARITY,
    "PsnrResult": ThresholdKind.SNR, "SnrResult": ThresholdKind.SNR,
})  # fmt: skip


@frozen_dataclass
class RejudgedRow:
    """One output of one iteration, or of all iterations together, judged again.

    Attributes:
        compare: The comparison function, e.g. ``simple`` or ``l2``.
        runners: Names of the two runners.
        output: Name of the output.
        iteration: Number of the iteration; None for the mean over all of them.
        metrics: The saved numbers; None where one was not computed.
        judgement: The verdict.
    """

    compare: str
    runners: tuple[str, str]
    output: str
    iteration: int | None
    metrics: Mapping[str, float | None]
    judgement: Judgement


@frozen_dataclass
class Rejudged:
    """Everything that was judged again.

    Attributes:
        rows: One per judged output, never empty.
        ignored: Saved comparison functions that no limit was given for.
        results: The saved results with their current limits, for saving.
    """

    rows: tuple[RejudgedRow, ...]
    ignored: tuple[str, ...]
    results: tuple[AccuracyResult, ...]

    @property
    def passed(self) -> bool:
        """Whether every row is within its limit."""
        return all(row.judgement.within for row in self.rows)


def rejudge(saved: SavedAccuracy, tolerances: Sequence[Tolerance], *, aggregation: str | None = None) -> Rejudged:
    """Judge saved comparisons again.

    Args:
        saved: The saved comparisons.
        tolerances: Each selects the saved comparison function it applies to; none at all for the limits and verdicts
            that are stored. Without an error statistic of its own, ``simple`` judges the largest error, which is at
            least as strict as judging every element.
        aggregation: ``average`` judges the mean of each metric over the iterations, ``per_sample`` each iteration by
            itself; None as it is stored.

    Raises:
        DataError: When a tolerance fits nothing that was saved (``accuracy-not-saved``), a statistic is not there
            (``statistic-not-saved``), results without numbers cannot be averaged (``accuracy-not-averageable``), or
            there is nothing to judge (``nothing-compared``).
        UsageError: For element-wise limits, or a script, which need the tensors (``tensors-not-saved``).
    """
    chosen: list[tuple[AccuracyResult, Tolerance | None]] = [(result, None) for result in saved.verdicts]
    if tolerances:
        chosen = [(_result_for(tolerance, saved.results), tolerance) for tolerance in tolerances]
    rows: list[RejudgedRow] = []
    results = []
    for result, tolerance in chosen:
        limited = _limited(result, tolerance, aggregation or result.aggregation)
        results.append(limited)
        for pair in limited.pairs:
            rows += _average_rows(limited, pair) if limited.aggregation == AVERAGE else _rows(limited, pair)
    if not rows:
        raise DataError(
            "the file holds no compared output",
            slug="nothing-compared",
            cure="save a file from a run with at least one feed",
        )
    judged = [id(result) for result, _ in chosen]
    ignored = tuple(WORDS[result.kind] for result in saved.results if tolerances and id(result) not in judged)
    return Rejudged(tuple(rows), ignored, tuple(results))


def _result_for(tolerance: Tolerance, results: Sequence[AccuracyResult]) -> AccuracyResult:
    if isinstance(tolerance, PolygraphyTolerance):
        kind = SIMPLE
    elif isinstance(tolerance, ThresholdTolerance):
        kind = CLASS_OF[tolerance.kind]
    else:
        raise _needs_tensors("a script")
    match = next((result for result in results if result.kind == kind), None)
    if match is None:
        raise DataError(
            f"no results of {WORDS[kind]} were saved, only " + ", ".join(WORDS[result.kind] for result in results),
            slug="accuracy-not-saved",
            cure="choose a comparison that was saved with --compare, or compare again",
        )
    return match


def _needs_tensors(what: str) -> UsageError:
    return UsageError(
        f"{what} needs the tensors, but only their metrics were saved",
        slug="tensors-not-saved",
        cure="choose --check-error-stat max, mean or median; or compare saved outputs: triage run MODEL --load-outputs "
        "FILE FILE",
    )


def _limited(result: AccuracyResult, tolerance: Tolerance | None, aggregation: str) -> AccuracyResult:
    """Return a result whose entries hold the new limits."""
    if tolerance is None:
        return dataclasses.replace(result, aggregation=aggregation)
    pairs = tuple(
        AccuracyPair(
            pair.runners,
            tuple({name: _relimited(name, entry, tolerance) for name, entry in row.items()} for row in pair.iterations),
        )
        for pair in result.pairs
    )
    return AccuracyResult(pairs, AVERAGE if aggregation == AVERAGE else PER_SAMPLE)


def _relimited(name: str, entry: AccuracyEntry, tolerance: Tolerance) -> AccuracyEntry:
    if entry.kind and isinstance(tolerance, PolygraphyTolerance):
        stat = _statistic(tolerance.check_error_stat, name)
        return with_limits(name, entry, dataclasses.replace(tolerance, check_error_stat=stat))
    return with_limits(name, entry, tolerance)


def _statistic(stat: ErrorStat | Mapping[str, ErrorStat], name: str) -> ErrorStat:
    """Return the statistic that is judged: the largest error, unless one is named; ``elemwise`` cannot be named."""
    if stat is ErrorStat.ELEMWISE:  # The default of a tolerance, not a choice.
        return ErrorStat.MAX
    found: ErrorStat = setting_for(stat, name, ErrorStat.MAX)
    if found is ErrorStat.ELEMWISE:
        raise _needs_tensors("judging every element")
    return found


def _rows(result: AccuracyResult, pair: AccuracyPair) -> Iterator[RejudgedRow]:
    for index, iteration in enumerate(pair.iterations):
        for name, entry in iteration.items():
            yield RejudgedRow(
                WORDS[entry.kind or result.kind], pair.runners, name, index, entry.metrics, _judge(name, entry)
            )


def _average_rows(result: AccuracyResult, pair: AccuracyPair) -> Iterator[RejudgedRow]:
    names = dict.fromkeys(name for iteration in pair.iterations for name in iteration)
    for name in names:
        entries = [iteration[name] for iteration in pair.iterations if name in iteration]
        if not all(entry.kind for entry in entries):
            raise DataError(
                f"'{name}' has no metrics in some iteration (its shapes differed), so that there is no mean to judge",
                slug="accuracy-not-averageable",
                cure="leave out --check-average",
            )
        metrics = {metric: _mean([entry.metrics[metric] for entry in entries]) for metric in entries[0].metrics}
        mean = dataclasses.replace(entries[0], metrics=metrics, passed=None)
        yield RejudgedRow(WORDS[result.kind], pair.runners, name, None, metrics, _judge(name, mean))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def _judge(name: str, entry: AccuracyEntry) -> Judgement:
    if entry.passed is not None:
        limit = "as it was judged" if entry.kind else "equal shapes"
        basis = Basis.USER if entry.kind else Basis.EQUALITY
        return Judgement(entry.passed, limit, 0.0 if entry.passed else math.inf, basis)
    if entry.kind == SIMPLE:
        return _judge_simple(name, entry)
    kind = _JUDGED_AS[entry.kind]
    (value,) = entry.metrics.values()
    tolerance = ThresholdTolerance(kind, float(entry.limits["threshold"]))
    judgement = tolerance.judge_number(name, math.nan if value is None else value)
    return dataclasses.replace(judgement, limit=judgement.limit.replace(kind.value, WORDS[entry.kind]))


def _judge_simple(name: str, entry: AccuracyEntry) -> Judgement:
    stat = str(entry.limits["check_error_stat"])
    if stat == ErrorStat.ELEMWISE.value:
        raise _needs_tensors("judging every element")
    absolute, relative = entry.metrics.get(f"{stat}_absdiff"), entry.metrics.get(f"{stat}_reldiff")
    if absolute is None:
        raise DataError(
            f"no {stat} of the errors of '{name}' was saved",
            slug="statistic-not-saved",
            cure="choose --check-error-stat max, mean or median, or compare again",
        )
    largest = math.inf if relative is None else relative
    return by_statistic(absolute, largest, float(entry.limits["atol"]), float(entry.limits["rtol"]), stat)
