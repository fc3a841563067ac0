"""Saved numbers are judged as Polygraphy 0.53.6 judges them: abs <= atol or rel <= rtol, NaN never, l2 at most, ..."""

import dataclasses
import math
from pathlib import Path

import pytest

from tensortriage.compare.judgement.tolerance import (
    ErrorStat,
    PolygraphyTolerance,
    ThresholdKind,
    ThresholdTolerance,
)
from tensortriage.errors import DataError, UsageError
from tensortriage.inputs.files.accuracy_results import SIMPLE_METRICS, AccuracyEntry, AccuracyPair, AccuracyResult
from tensortriage.workflows.comparison.rejudge import rejudge
from tensortriage.workflows.comparison.saved_accuracy import SavedAccuracy, load_accuracy

GOLDEN = Path(__file__).parents[3] / "golden/polygraphy"
MAX = {"": ErrorStat.MAX}


def saved(*entries):
    """One result with one output ``y``, an iteration per entry."""
    iterations = tuple({"y": entry} for entry in entries)
    result = AccuracyResult((AccuracyPair(("r0", "r1"), iterations),))
    return SavedAccuracy((result,), (result,))


def simple(absolute, relative, passed=None, **others):
    metrics = dict.fromkeys(SIMPLE_METRICS) | {"max_absdiff": absolute, "max_reldiff": relative} | others
    limits = {"check_error_stat": "elemwise" if passed is not None else "max", "atol": 1e-5, "rtol": 1e-5}
    return AccuracyEntry("OutputCompareResult", metrics, limits, passed)


@pytest.mark.parametrize(
    ("absolute", "relative", "atol", "rtol", "within"),
    [
        (0.1, 9.0, 0.1, 0.0, True),
        (0.1, 0.5, 0.01, 0.5, True),
        (0.1, 0.5, 0.01, 0.4, False),
        (math.nan, 0.0, 1.0, 0.0, True),
        (math.nan, math.nan, 1.0, 1.0, False),
        (0.0, 0.0, 0.0, 0.0, True),
    ],
)
def test_either_tolerance_is_enough(absolute, relative, atol, rtol, within):
    tolerance = PolygraphyTolerance({"": atol}, {"": rtol}, MAX)
    (row,) = rejudge(saved(simple(absolute, relative)), [tolerance]).rows
    assert row.judgement.within is within
    assert row.judgement.limit == f"abs <= {atol:g} or rel <= {rtol:g} (max)"


def test_settings_differ_by_output():
    entry = simple(0.5, 9.0, mean_absdiff=0.1, mean_reldiff=9.0)
    result = AccuracyResult((AccuracyPair(("a", "b"), ({"y": entry, "z": entry},)),))
    tolerance = PolygraphyTolerance({"": 1.0, "z": 0.2}, 1e-5, {"": ErrorStat.MAX, "z": ErrorStat.MEAN})
    rows = rejudge(SavedAccuracy((result,), (result,)), [tolerance]).rows
    assert [(row.output, row.judgement.within, row.judgement.limit) for row in rows] == [
        ("y", True, "abs <= 1 or rel <= 1e-05 (max)"),
        ("z", True, "abs <= 0.2 or rel <= 1e-05 (mean)"),
    ]


@pytest.mark.parametrize(
    ("kind", "metric", "threshold", "good", "bad"),
    [
        (ThresholdKind.L2, "l2_norm", 0.5, 0.5, 0.51),
        (ThresholdKind.COSINE_SIMILARITY, "cosine_similarity", 0.9, 0.9, 0.89),
        (ThresholdKind.PSNR, "psnr", 25.0, math.inf, 24.9),
        (ThresholdKind.SNR, "snr", 25.0, 25.0, 24.9),
        (ThresholdKind.SNR, "snr", None, 20.0, 19.9),
        (ThresholdKind.L2, "l2_norm", None, 1e-5, math.nan),
    ],
)
def test_thresholds(kind, metric, threshold, good, bad):
    name = {"l2_norm": "L2Result", "cosine_similarity": "CosineSimilarityResult", "psnr": "PsnrResult"}
    entries = [AccuracyEntry(name.get(metric, "SnrResult"), {metric: v}, {"threshold": 0.0}, None) for v in (good, bad)]
    setting = None if threshold is None else {"": threshold}
    done = rejudge(saved(*entries), [ThresholdTolerance(kind, setting)])
    assert [row.judgement.within for row in done.rows] == [True, False]
    assert done.rows[0].compare == kind.value
    assert done.rows[0].judgement.limit.startswith(kind.value)
    assert not done.passed


def test_golden_verdicts_stand_as_saved_and_selection_drops_the_rest():
    everything = load_accuracy(GOLDEN / "accuracy.json")
    as_saved = rejudge(everything, [])
    # make.py: only l2 (0.024 > 1e-3) and indices failed, in both iterations.
    assert {row.compare for row in as_saved.rows if not row.judgement.within} == {"l2", "verdicts without numbers"}
    assert len(as_saved.rows) == 12
    only = rejudge(everything, [ThresholdTolerance(ThresholdKind.SNR, 55.0)])
    assert [row.judgement.within for row in only.rows] == [False, True]
    assert only.ignored == ("simple", "l2", "cosine_similarity", "psnr", "verdicts without numbers")


def test_means_over_iterations():
    entries = [AccuracyEntry("L2Result", {"l2_norm": v}, {"threshold": 1.0}, None) for v in (0.5, 1.3)]
    (row,) = rejudge(saved(*entries), [], aggregation="average").rows
    assert (row.iteration, row.metrics, row.judgement.within) == (None, {"l2_norm": 0.9}, True)
    each = rejudge(saved(*entries), [], aggregation="per_sample")
    assert [row.judgement.within for row in each.rows] == [True, False]
    lost = [dataclasses.replace(entries[0], metrics={"l2_norm": None}), entries[1]]
    assert not rejudge(saved(*lost), [], aggregation="average").passed


def refused(kind, slug, saved_accuracy, *tolerances, **options):
    with pytest.raises(kind) as caught:
        rejudge(saved_accuracy, tolerances, **options)
    assert caught.value.slug == slug
    assert caught.value.cure


def test_what_numbers_cannot_tell_is_refused():
    entry = simple(0.1, 0.1, passed=True)
    elementwise = PolygraphyTolerance(check_error_stat={"": ErrorStat.ELEMWISE})
    refused(UsageError, "tensors-not-saved", saved(entry), elementwise)
    refused(UsageError, "tensors-not-saved", saved(entry), aggregation="average")
    quantile = PolygraphyTolerance(check_error_stat=ErrorStat.QUANTILE)
    refused(DataError, "statistic-not-saved", saved(entry), quantile)
    refused(DataError, "accuracy-not-saved", saved(entry), ThresholdTolerance(ThresholdKind.L2))
    shapes = AccuracyEntry("", {}, {}, False)
    refused(
        DataError,
        "accuracy-not-averageable",
        saved(entry, shapes),
        PolygraphyTolerance(1, 1, MAX),
        aggregation="average",
    )
    refused(DataError, "nothing-compared", saved())


def test_a_shape_mismatch_fails_whatever_the_limits():
    entries = (simple(0.0, 0.0), AccuracyEntry("", {}, {}, False))
    done = rejudge(saved(*entries), [PolygraphyTolerance(9.0, 9.0, MAX)])
    assert [row.judgement.within for row in done.rows] == [True, False]


def test_without_a_statistic_the_largest_error_counts_and_a_verdict_is_replaced():
    entry = simple(0.1, 0.1, passed=True)
    assert rejudge(saved(entry), []).passed
    done = rejudge(saved(entry), [PolygraphyTolerance({"": 0.05}, {}, {})])
    assert not done.passed
    assert done.results[0].pairs[0].iterations[0]["y"].limits["check_error_stat"] == "max"
