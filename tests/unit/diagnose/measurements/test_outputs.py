"""Outputs against the reference's: what cannot be compared, what is judged by which limit, and what is worst."""

import numpy as np
import pytest

from tensortriage.compare.judgement.ranked import RankedComparison
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.decided import Decided
from tensortriage.diagnose.measurements.outputs import (
    FeedResult,
    OutputFigures,
    Unsound,
    deployed,
    judge,
    measured_outputs,
    output_floors,
    with_decided,
    worst_result,
)
from tensortriage.envelope.setting import Floors
from tensortriage.inputs.feed import Feed, Origin

MODEL = """g (float[2, 3] x) => (float[2, 3] y, int64[2] n) {
    [work] y = Exp(x)
    [size] n = Shape(x)
}"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)
IMAGE = np.random.default_rng(0).standard_normal((8, 9)).astype(np.float32)
ONE = np.float32([1, 1])
FLOORS = Floors({"y": 1e-6, "n": 0.0}, {"y": 1e-3, "n": 0.0}, {}, "envelope")


def decided(judged, figure, *, floors=FLOORS):
    return Decided({"i": judged}, {"i": judged}, {"y": ("i",)}, {"y": figure}, floors)


def result(error=0.0, *, within=True, floor=1e-6, name="real", by=None, figure=None):
    figure = figure or measure(ONE, ONE * np.float32(1 + error))
    floors = Floors({"y": floor}, {}, {}, "envelope")
    return FeedResult(Feed(name, {}, Origin.REAL), {"y": figure}, floors, {"y": error}, {"y": within}, by)


def ranks(mismatches=0, ties=0):
    return RankedComparison("ranks", 4, mismatches, ties)


@pytest.mark.parametrize(
    ("target", "places", "layout"),
    [
        ({"y": IMAGE.T}, "output 'y': ", True),
        ({"other": IMAGE.T}, "'other' holds 'y'", False),
        ({"y": IMAGE.view(np.int32)}, "of 'y', the bytes are the right numbers in float32, read as int32", False),
        ({"y": (5 * IMAGE).astype(int)}, "", False),
        ({"y": IMAGE.astype(int)}, "of 'y', the numbers are cut to whole ones; cure: keep them in float32", False),
        ({"y": IMAGE[:1] + 7}, "", False),
        ({}, "", False),
    ],
)
def test_values_in_other_places_are_recognised(target, places, layout):
    found = Unsound.because("why", {"y": IMAGE}, target)
    assert (str(found), found.layout) == ("why", layout)
    assert places in found.places
    assert bool(found.places) is bool(places)


def test_what_is_missing_or_has_another_shape_cannot_be_compared(investigate):
    inv = investigate(MODEL, {"x": X})
    feed, right = inv.question.feeds[0], {"y": np.exp(X), "n": np.array([2, 3])}
    found = measured_outputs(inv, feed, right).metrics
    assert list(found) == ["y", "n"]
    assert error_of(found["n"]) == 0.0
    for wrong in ({"n": right["n"]}, {**right, "y": right["y"][:1]}, {**right, "y": right["y"].astype(np.int64)}):
        with pytest.raises(Unsound, match="output 'y'"):
            measured_outputs(inv, feed, wrong)


@pytest.mark.parametrize(("relative", "passes"), [(None, False), (0.02, True), (0.001, False)])
def test_a_tolerance_of_the_user_decides_instead_of_the_floor(investigate, relative, passes):
    tolerance = None if relative is None else PolygraphyTolerance(atol=0.0, rtol=relative)
    inv = investigate(MODEL, {"x": X}, target="faulty:kind=scale,node=work,amount=1.01", tolerance=tolerance)
    feed = inv.question.feeds[0]
    found = judge(inv, feed, deployed(inv, feed), output_floors(inv))
    assert (found.within["y"], found.within["n"], found.passes) == (passes, True, passes)
    assert found.errors["y"] == pytest.approx(0.01, rel=1e-3)  # what was planted


def test_floors_are_the_largest_of_the_first_feeds_and_of_outputs_alone(investigate):
    small, large = {"x": X}, {"x": 10 * X}
    both = output_floors(investigate(MODEL, small, large))
    each = [output_floors(investigate(MODEL, feed)) for feed in (small, large)]
    assert set(both.fp32) == {"y", "n"}
    assert both.fp32["y"] == max(one.fp32["y"] for one in each) > 0
    assert error_of(both.reference["y"]) == max(error_of(one.reference["y"]) for one in each)


def test_a_narrow_format_has_higher_floors(investigate):
    floors = output_floors(investigate(MODEL, {"x": X}, target="emulate:precision=fp16"))
    assert floors.target["y"] > 100 * floors.fp32["y"]
    assert floors.target["y"] < 2.0**-8  # fp16 rounds by 2^-11 at most, and exp makes up to 5 times that of it


@pytest.mark.parametrize(
    ("judged", "within", "error"),
    [(ranks(), True, 0.0), (ranks(ties=2), True, 0.0), (ranks(mismatches=1), False, 0.25)],
)
def test_an_output_behind_a_decision_passes_only_with_a_valid_one(investigate, judged, within, error):
    inv = investigate(MODEL, {"x": X})
    figures = OutputFigures({"y": measure(ONE, ONE)}, decided(judged, measure(ONE, ONE)))
    found = judge(inv, inv.question.feeds[0], figures, FLOORS)
    assert (found.within["y"], found.errors["y"]) == (within, error)  # the share of decisions that are none


def test_floors_of_decided_outputs_replace_the_others():
    own = Floors({"y": 5.0, "z": 6.0}, {"y": 7.0}, {}, "")
    found = with_decided(FLOORS, decided(ranks(), None, floors=own))
    assert dict(found.fp32) == {"y": 5.0, "n": 0.0}  # no output is called z
    assert dict(found.target) == {"y": 7.0, "n": 0.0}
    assert found.source == "envelope"


def test_an_output_is_told_in_words_that_fit_its_type_and_its_decision():
    integers = measure(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 5]))
    assert result(0.5).in_words("y") == "is off by 50 %"
    assert result(0.25, figure=integers).in_words("y") == "has 1 of 4 elements unequal"
    same = decided(ranks(ties=1), measure(ONE, ONE))
    assert "given 'i', of which 1 of 4 ranks differ" in result(by=same).in_words("y")
    assert "given" not in result(by=decided(ranks(), measure(ONE, ONE))).in_words("y")
    wrong = result(by=decided(ranks(mismatches=2), measure(ONE, ONE)))
    assert wrong.in_words("y").startswith("follows from 'i': 2 of 4 ranks differ")
    assert wrong.measure("y") == "share of ranks beyond a tie"
    assert result(by=same).measure("y") == result().measure("y") == "relative RMS error"
    equal = measure(np.array([1]), np.array([1]))
    assert result(figure=equal, by=same).in_words("y").startswith("is decided by scores: ")
    assert result(figure=equal, by=same).measure("y") == "share of ranks beyond a tie"


def test_a_failing_feed_is_worse_than_any_passing_one():
    failing = result(1e-5, within=False, floor=1e-5, name="failing")
    passing, further = result(1e-5, name="passing"), result(2e-5, name="further")
    assert worst_result((passing, failing, further)) is failing
    assert worst_result((passing, further)) is further
    assert worst_result((result(0.1, floor=0.0), passing)).errors["y"] == 0.1  # infinitely above a floor of 0
    assert further.worst_output() == ("y", 2e-5, pytest.approx(20.0))
    assert result(0.0, floor=0.0).worst_output()[2] == 0.0


@pytest.mark.parametrize(("failing", "worst"), [("near", "near"), ("", "far"), ("far", "far")])
def test_the_worst_output_fails_or_else_is_farthest_above_its_floor(failing, worst):
    errors = {"near": 1e-5, "far": 1e-4, "mid": 5e-5}
    floors = Floors(dict.fromkeys(errors, 1e-5), {}, {}, "")
    within = {name: name != failing for name in errors}
    found = FeedResult(Feed("real", {}, Origin.REAL), {}, floors, errors, within)
    assert found.worst_output() == (worst, errors[worst], pytest.approx(errors[worst] / 1e-5))


@pytest.mark.parametrize("tolerance", [None, PolygraphyTolerance()])
def test_decisions_are_followed_where_the_user_gives_no_tolerance(investigate, tolerance):
    text = "g (float[3] x) => (int64[1] label) { label = ArgMax(x) }"
    inv = investigate(text, {"x": np.float32([1, 3, 2])}, tolerance=tolerance)
    found = deployed(inv, inv.question.feeds[0])
    assert (found.decided is None) is (tolerance is not None)
    assert bool(found.judged) is (tolerance is not None)
