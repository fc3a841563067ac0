"""Verdicts of Polygraphy 0.53.6 itself are in tests/golden/tolerance (make.py records them); the rest is by hand."""

import json
import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tensortriage.compare.judgement.tolerance import (
    ErrorStat,
    EveryTolerance,
    IndexTolerance,
    PolygraphyTolerance,
    ThresholdKind,
    ThresholdTolerance,
)
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.errors import UsageError

GOLDEN = Path(__file__).parents[3] / "golden" / "tolerance" / "polygraphy-0.53.6.json"
CASES = json.loads(GOLDEN.read_text())["cases"]
STATS = {stat.value for stat in ErrorStat}


def judge(tolerance, reference, target, name="x"):
    return tolerance.judge(name, measure(reference, target), reference, target)


def tensors(case):
    dtype = np.dtype(case["dtype"])
    sides = (
        [float(item) if isinstance(item, str) else item for item in case[side]] for side in ("reference", "target")
    )
    return tuple(np.array(side, dtype=dtype) for side in sides)


def of(case):
    if case["check"] not in STATS:
        return ThresholdTolerance(ThresholdKind(case["check"]), case["threshold"])
    return PolygraphyTolerance(
        atol=case["atol"],
        rtol=case["rtol"],
        check_error_stat=ErrorStat(case["check"]),
        error_quantile=case["error_quantile"],
        infinities_compare_equal=case["infinities_compare_equal"],
    )


@pytest.mark.parametrize("check", sorted(STATS | {kind.value for kind in ThresholdKind}))
def test_verdicts_are_those_of_polygraphy(check):
    cases = [case for case in CASES if case["check"] == check]
    assert {case["passed"] for case in cases} == {True, False}
    for case in cases:
        judgement = judge(of(case), *tensors(case))
        assert judgement.within == case["passed"], case
        if abs(judgement.ratio - 1) > 1e-6:
            assert (judgement.ratio < 1) == case["passed"], case


def test_absolute_or_relative_not_their_sum():
    # numpy.allclose would accept 1.5e-5 + 1.5e-5 * 1 here.
    tolerance = PolygraphyTolerance(atol=1e-5, rtol=1e-5)
    assert not judge(tolerance, np.float64([1.0]), np.float64([1.000015])).within
    assert judge(tolerance, np.float64([1000.0]), np.float64([1000.005])).within


def test_the_relative_error_is_to_the_reference():
    tolerance = PolygraphyTolerance(atol=0.0, rtol=0.5)
    assert not judge(tolerance, np.float32([1.0]), np.float32([2.0])).within
    assert judge(tolerance, np.float32([2.0]), np.float32([1.0])).within


def test_the_ratio_says_how_far_outside():
    judgement = judge(PolygraphyTolerance(atol=0.1, rtol=1e-5), np.float32([0.0, 1.0]), np.float32([0.0, 1.3]))
    assert judgement.ratio == pytest.approx(3.0, rel=1e-6)
    assert judgement.limit == "abs <= 0.1 or rel <= 1e-05 (elemwise)"


def test_settings_by_name_with_a_default():
    tolerance = PolygraphyTolerance(
        atol={"a": 1.0, "": 0.1}, rtol=0.0, check_error_stat={"a": ErrorStat.MEAN}, error_quantile={"": 0.5}
    )
    pair = np.float32([0, 0]), np.float32([0, 1.5])
    assert judge(tolerance, *pair, name="a").within
    assert not judge(tolerance, *pair, name="b").within
    assert "(mean)" in judge(tolerance, *pair, name="a").limit
    assert "abs <= 1e-05" in judge(PolygraphyTolerance(atol={"a": 1.0}), *pair, name="b").limit


@pytest.mark.parametrize("stat", list(ErrorStat))
def test_a_nan_is_outside_of_any_limit(stat):
    tolerance = PolygraphyTolerance(atol=1e9, rtol=1e9, check_error_stat=stat)
    pair = np.float32([1, math.nan, 1, 1]), np.float32([1, math.nan, 1, 1])
    assert not judge(tolerance, *pair).within


def test_equal_infinities_are_outside_unless_asked():
    pair = np.float32([1, math.inf]), np.float32([1, math.inf])
    assert not judge(PolygraphyTolerance(), *pair).within
    assert judge(PolygraphyTolerance(infinities_compare_equal=True), *pair).within
    opposite = pair[0], -pair[1]
    assert not judge(PolygraphyTolerance(infinities_compare_equal=True), *opposite).within


@pytest.mark.parametrize(
    "tolerance",
    [
        *(PolygraphyTolerance(check_error_stat=stat) for stat in ErrorStat),
        *(ThresholdTolerance(kind) for kind in ThresholdKind),
    ],
)
def test_an_empty_tensor_is_within(tolerance):
    assert judge(tolerance, np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32)).within


@pytest.mark.parametrize(
    ("reference", "target", "within"),
    [
        # Where Polygraphy is wrong: its int64 difference overflows and passes; it cannot read the others at all.
        (np.int64([2**62]), np.int64([-(2**62)]), False),
        (np.array(["a"]), np.array(["b"]), False),
        (np.array(["a"]), np.array(["a"]), True),
        (np.array([1], ml_dtypes.bfloat16), np.array([1.0078125], ml_dtypes.bfloat16), False),
        (np.array([1], ml_dtypes.bfloat16), np.float32([1.000001]), True),
        (np.array([1], ml_dtypes.float8_e4m3fn), np.array([1], ml_dtypes.float8_e4m3fn), True),
        (np.array([-8], ml_dtypes.int4), np.array([7], ml_dtypes.int4), False),
        (np.complex64([1 + 1j]), np.complex64([1 + 2j]), False),
    ],
)
def test_types_that_polygraphy_gets_wrong(reference, target, within):
    assert judge(PolygraphyTolerance(), reference, target).within == within


def test_thresholds_default_to_those_of_polygraphy():
    reference = np.float32([1, 0, 2])
    assert [judge(ThresholdTolerance(kind), reference, reference).limit for kind in ThresholdKind] == [
        "l2 <= 1e-05",
        "cosine_similarity >= 0.997",
        "psnr >= 30 dB",
        "snr >= 20 dB",
    ]


def test_thresholds_by_name():
    tolerance = ThresholdTolerance(ThresholdKind.L2, {"a": 2.0, "": 0.5})
    pair = np.float32([0]), np.float32([1])
    assert judge(tolerance, *pair, name="a").within
    assert judge(tolerance, *pair, name="b").ratio == 2.0


def test_psnr_takes_the_largest_value_of_the_reference_as_peak():
    # Polygraphy 0.53.6 issue: swapping the sides changes -36.9 dB to 3.1 dB; here the reference is the reference.
    reference, target = np.float32([1.0, 2.0]), np.float32([100.0, 200.0])
    decibels = 20 * math.log10(2) - 10 * math.log10((99**2 + 198**2) / 2)
    assert judge(ThresholdTolerance(ThresholdKind.PSNR, decibels - 0.01), reference, target).within
    assert not judge(ThresholdTolerance(ThresholdKind.PSNR, decibels + 0.01), reference, target).within


def test_every_tolerance_must_agree():
    loose, strict = PolygraphyTolerance(atol=1.0), PolygraphyTolerance(atol=0.1, rtol=0.0)
    pair = np.float32([0]), np.float32([0.5])
    assert judge(EveryTolerance([loose, strict]), *pair) == judge(strict, *pair)
    assert judge(EveryTolerance([loose]), *pair).within
    with pytest.raises(UsageError):
        judge(EveryTolerance([]), *pair)


@pytest.mark.parametrize("settings", [{"atol": math.nan}, {"rtol": {"x": math.nan}}, {"error_quantile": math.nan}])
def test_nan_is_no_tolerance(settings):
    with pytest.raises(UsageError) as caught:
        PolygraphyTolerance(**settings)
    assert caught.value.slug == "tolerance-nan"


def test_words_of_the_command_line():
    assert ErrorStat.parse("median") is ErrorStat.MEDIAN
    with pytest.raises(UsageError) as caught:
        ErrorStat.parse("avg")
    assert "elemwise" in caught.value.cure


@pytest.mark.parametrize(
    ("reference", "target", "allowed", "within"),
    [
        ([0, 1, 2], [1, 0, 2], 0, False),
        ([0, 1, 2], [1, 0, 2], 1, True),
        ([0, 1, 2], [1, 2, 0], 1, False),
        ([0, 1, 2], [1, 2, 0], 2, True),
        ([0, 1, 2, 3], [0, 1, 2, 9], 0, False),
        ([0, 1, 2, 3], [0, 1, 2, 9], 1, True),  # 3 may have been pushed out by 9
        ([0, 1, 2, 3], [9, 0, 1, 2], 1, True),
        ([9, 0, 1, 2], [0, 1, 2, 9], 1, False),  # Polygraphy passes the last place without a look, but not this first
        ([3, 1, 2, 0], [0, 1, 2, 3], 1, False),
        ([7, 7, 1], [7, 1, 7], 1, True),  # the first 7 stays, the second moves by one
        ([[0, 1], [2, 3]], [[0, 1], [3, 2]], 0, False),
        ([], [], 0, True),
    ],
)
def test_places(reference: list[int], target: list[int], allowed: int, within: bool) -> None:
    ours, theirs = np.array(reference, np.int64), np.array(target, np.int64)
    judgement = IndexTolerance(allowed).judge("x", measure(ours, theirs), ours, theirs)
    assert judgement.within is within
    assert (judgement.ratio > 1) is not within


def test_a_tolerance_per_output() -> None:
    ours, theirs = np.array([0, 1]), np.array([1, 0])
    tolerance = IndexTolerance({"x": 1, "": 0})
    assert tolerance.judge("x", measure(ours, theirs), ours, theirs).within
    assert not tolerance.judge("y", measure(ours, theirs), ours, theirs).within
