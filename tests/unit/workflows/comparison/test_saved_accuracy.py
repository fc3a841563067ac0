"""Saved comparisons as accuracy results: ours read back, Polygraphy's with their limits, what no limit accepts."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from tensortriage.compare.comparison import Comparison, Row
from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.judgement.tolerance import (
    ErrorStat,
    PolygraphyTolerance,
    ThresholdKind,
    ThresholdTolerance,
    setting_for,
)
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.errors import DataError
from tensortriage.inputs.files.accuracy_results import AVERAGE, SIMPLE_METRICS, AccuracyEntry
from tensortriage.report.run_result import CompareResult, FeedComparison
from tensortriage.values import serial
from tensortriage.workflows.comparison.rejudge import rejudge
from tensortriage.workflows.comparison.saved_accuracy import (
    SavedAccuracy,
    accuracy_of,
    as_judged,
    averaged,
    load_accuracy,
    with_limits,
)

GOLDEN = Path(__file__).parents[3] / "golden/polygraphy"
MAX = {"": ErrorStat.MAX}


def compared(reference, target, within=True):
    metrics = measure(np.float32(reference), np.float32(target))
    row = Row("y", "node", "Relu", metrics, Judgement(within, "floor", 0.5, Basis.FLOOR))
    comparison = FeedComparison("f[0]", Comparison("onnxruntime", "openvino", (row,)))
    return CompareResult("onnxruntime", ("openvino",), {"f[0]": "real"}, "deployed", {}, (comparison,), (), {}, {})


def test_our_own_document_is_read_back(tmp_path):
    document = json.loads(serial.to_json(compared([3, 4], [3, 5], within=False)))
    (tmp_path / "run.json").write_text(json.dumps({**document, "passed": False}))
    loaded = load_accuracy(tmp_path / "run.json")
    (row,) = rejudge(loaded, []).rows
    assert (row.runners, row.judgement.within) == (("openvino", "onnxruntime"), False)
    limits = [PolygraphyTolerance(1.0, 0.0), ThresholdTolerance(ThresholdKind.L2, 1.0)]
    assert rejudge(loaded, limits).passed
    # SNR = 20 log10(|(3, 4)| / |(0, 1)|) = 20 log10(5)
    (row,) = rejudge(loaded, [ThresholdTolerance(ThresholdKind.SNR, 14.0)]).rows
    assert row.metrics["snr"] == pytest.approx(20 * math.log10(5))


def test_a_nan_of_ours_passes_no_limit():
    loose = [PolygraphyTolerance(math.inf, math.inf, MAX), ThresholdTolerance(ThresholdKind.SNR, -999.0)]
    for reference, target in (([1, math.nan], [1, math.nan]), ([1, 2], [1, math.nan]), ([1, math.inf], [1, 2])):
        results = accuracy_of(compared(reference, target))
        rows = rejudge(SavedAccuracy(results, results), loose).rows
        assert [row.judgement.within for row in rows] == [False, False]


def test_equal_infinities_are_an_error_unless_told():
    result = compared([1, math.inf], [1, math.inf])
    for equal in (False, True):
        results = accuracy_of(result, infinities_equal=equal)
        assert rejudge(SavedAccuracy(results, results), [PolygraphyTolerance(0.1, 0.1, MAX)]).passed is equal


def test_files_of_neither_kind_are_refused(tmp_path):
    for text in ("[]", "{}", '{"format": "tensortriage.run/1"', '["tensortriage.run/1"]'):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(DataError):
            load_accuracy(tmp_path / "a.json")
    with pytest.raises(DataError) as caught:
        load_accuracy(tmp_path / "absent.json")
    assert caught.value.slug == "accuracy-missing"


def entry(kind, metrics, **more):
    """Return an entry of a class, with no limits and no verdict."""
    return AccuracyEntry(kind, metrics, more.get("limits", {}), more.get("passed"))


def test_the_numbers_are_those_that_polygraphy_keeps():
    """Worked by hand: errors 0 and 2, references 3 and 4."""
    simple, l2, cosine, snr = accuracy_of(compared([3, 4], [3, 6]))
    assert [pair.runners for pair in simple.pairs] == [("openvino", "onnxruntime")]
    numbers = simple.pairs[0].iterations[0]["y"].metrics
    expected = {
        "max_absdiff": 2.0, "max_reldiff": 0.5, "mean_absdiff": 1.0, "mean_reldiff": 0.25, "median_absdiff": 1.0,
        "median_reldiff": None,
    }  # fmt: skip
    assert {name: numbers[name] for name in expected} == pytest.approx(expected)
    assert simple.pairs[0].iterations[0]["y"].passed is True
    assert l2.pairs[0].iterations[0]["y"].metrics == {"l2_norm": pytest.approx(2.0)}
    assert cosine.pairs[0].iterations[0]["y"].metrics == {"cosine_similarity": pytest.approx(33 / math.sqrt(25 * 45))}
    assert snr.pairs[0].iterations[0]["y"].metrics == {"snr": pytest.approx(20 * math.log10(5 / 2))}
    same = accuracy_of(compared([3, 4], [3, 4]))[0].pairs[0].iterations[0]["y"].metrics
    assert same["median_reldiff"] == 0.0  # which is known only where there is no error


def test_every_target_has_a_pair_and_every_feed_an_iteration():
    one = compared([1], [1])
    (first,) = one.comparisons
    other = dataclasses.replace(first, comparison=dataclasses.replace(first.comparison, target="tensorrt"))
    both = dataclasses.replace(one, comparisons=(first, other, dataclasses.replace(first, feed="f[1]"), other))
    assert [(pair.runners, len(pair.iterations)) for pair in accuracy_of(both)[1].pairs] == [
        (("openvino", "onnxruntime"), 2),
        (("tensorrt", "onnxruntime"), 2),
    ]


def test_a_result_is_kept_for_each_tolerance_that_judged():
    tolerances = [ThresholdTolerance(ThresholdKind.SNR, 30.0), PolygraphyTolerance(0.1, 0.2), object()]
    found = as_judged(compared([3, 4], [3, 5]), tolerances, {"openvino": "ov-runner"})
    assert [result.kind for result in found] == ["SnrResult", "OutputCompareResult"]
    assert [result.pairs[0].runners for result in found] == [("ov-runner", "onnxruntime")] * 2
    limits = [result.pairs[0].iterations[0]["y"].limits for result in found]
    assert limits == [{"threshold": 30.0}, {"check_error_stat": "elemwise", "atol": 0.1, "rtol": 0.2}]
    assert [result.aggregation for result in averaged(found)] == [AVERAGE] * 2


@pytest.mark.parametrize(
    ("given", "name", "found"),
    [(2.0, "y", 2.0), ({"y": 3.0, "": 4.0}, "y", 3.0), ({"": 4.0}, "y", 4.0), ({"z": 3.0}, "y", 5.0)],
)
def test_a_setting_is_one_value_or_one_per_output(given, name, found):
    assert setting_for(given, name, 5.0) == found


def test_a_threshold_that_is_not_given_is_polygraphys():
    limits = with_limits("y", entry("CosineSimilarityResult", {"cosine_similarity": 1.0}, passed=True),
                         ThresholdTolerance(ThresholdKind.COSINE_SIMILARITY, None))  # fmt: skip
    assert (limits.limits, limits.passed) == ({"threshold": 0.997}, None)


def test_a_verdict_stays_only_where_the_numbers_cannot_give_it_again():
    numbers = dict.fromkeys(SIMPLE_METRICS, 1.0)
    simple = entry("OutputCompareResult", numbers, passed=True)
    elementwise = with_limits("y", simple, PolygraphyTolerance(0.1, {"y": 0.2}))
    assert elementwise.passed is True
    assert elementwise.limits == {"check_error_stat": "elemwise", "atol": 0.1, "rtol": 0.2}
    assert {name for name, value in elementwise.metrics.items() if value is None} == {
        name for name in SIMPLE_METRICS if name.startswith("quantile")
    }
    largest = with_limits("y", simple, PolygraphyTolerance({}, {}, MAX))
    assert (largest.passed, largest.limits) == (None, {"check_error_stat": "max", "atol": 1e-5, "rtol": 1e-5})
    quantile = with_limits("y", simple, PolygraphyTolerance(0.1, 0.1, {"": ErrorStat.QUANTILE}))
    assert (quantile.metrics, quantile.passed) == (numbers, None)


def test_what_has_no_numbers_or_is_judged_otherwise_stays_as_it_is():
    bare = entry("", {}, passed=False)
    assert with_limits("y", bare, PolygraphyTolerance(9.0, 9.0)) is bare
    known = entry("L2Result", {"l2_norm": 1.0})
    assert with_limits("y", known, object()) is known
