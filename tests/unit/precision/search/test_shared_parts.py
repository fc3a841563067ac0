"""What a search asks of the outputs, made of the user's words, and what it tells of the nodes it kept."""

import math
import types

import numpy as np
import pytest

from models import parse
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.errors import DataError, UsageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.precision.goal import ErrorGoal, GoalSample, MetricGoal, ToleranceGoal
from tensortriage.precision.search.request import GoalRequest
from tensortriage.precision.search.shared_parts import casts_in, goal_of, in_order, keepings
from tensortriage.values.dtype import Precision

FEED = Feed("f", {"x": np.array([1.0, 2.0], np.float32)}, Origin.REAL)
SAMPLES = tuple(GoalSample(FEED, {"y": np.array([size, 0.0], np.float32)}) for size in (1.0, 2.0, 3.0))
HALF_ROUNDING = 2.0**-10 / math.sqrt(12.0) * math.sqrt(3.0 / (8.0 * math.log(2.0)))
"""Relative RMS error of one rounding to fp16 (10 bits behind the point), of uniform error and Benford's mantissas."""


def floors(*found):
    """Return what measures floors: these, one after the other."""
    rest = iter(found)
    return lambda feed, names: {"y": next(rest)}


def never(feed, names):
    """Fail: no floor has to be measured."""
    raise AssertionError


def goal(request, floors_of=never, precision=Precision.FP16):
    return goal_of(request, floors_of, SAMPLES, precision)


def test_a_ratio_in_decibels_is_a_relative_error():
    found = goal(GoalRequest(sqnr_db=40.0))
    assert isinstance(found, ErrorGoal)
    assert (found.limit, found.words) == ({"y": pytest.approx(0.01)}, "SQNR >= 40 dB")  # 20 log10 of a ratio


def test_a_factor_is_of_the_largest_floor_of_the_first_two_samples():
    found = goal(GoalRequest(floor_factor=3.0), floors(1e-7, 4e-7))
    assert found.limit == {"y": pytest.approx(1.2e-6)}


def test_without_words_ten_roundings_are_allowed_or_ten_times_a_higher_floor():
    assert goal(GoalRequest(), floors(1e-9, 1e-9)).limit == {"y": pytest.approx(10.0 * HALF_ROUNDING)}
    assert goal(GoalRequest(), floors(1e-9, 0.5)).limit == {"y": pytest.approx(5.0)}


def test_int8_has_no_rounding_of_its_own_to_ask_for():
    with pytest.raises(UsageError) as found:
        goal(GoalRequest(), precision=Precision.INT8)
    assert found.value.slug == "precision-goal-missing"
    assert goal(GoalRequest(floor_factor=2.0), floors(1e-7, 1e-7), Precision.INT8).limit == {"y": pytest.approx(2e-7)}


def test_a_tolerance_is_taken_as_it_is():
    tolerance = PolygraphyTolerance(atol={"": 1e-3}, rtol={})
    found = goal(GoalRequest(tolerance=tolerance))
    assert isinstance(found, ToleranceGoal)
    assert found.tolerance is tolerance


def test_a_metric_asks_for_what_the_reference_reaches_on_the_mean():
    def total(outputs, feed):
        return outputs["y"][0] + feed["x"][0]

    found = goal(GoalRequest(metric=total))
    assert isinstance(found, MetricGoal)
    assert found.least == pytest.approx(3.0)  # the mean of 1, 2 and 3, plus 1
    assert found.words == "total >= 3"


@pytest.mark.parametrize(
    ("value", "least", "error", "slug"),
    [(0.5, 0.9, UsageError, "precision-goal-unreachable"), (math.nan, None, DataError, "script-not-number")],
)
def test_a_metric_that_the_reference_does_not_reach_is_refused(value, least, error, slug):
    with pytest.raises(error) as found:
        goal(GoalRequest(metric=lambda outputs, feed: value, metric_min=least))
    assert found.value.slug == slug


CASTING = parse("""g (float[2] x) => (float[2] y) {
  h = Cast<to: int = 10>(x)
  e = Exp(h)
  f = Cast<to: int = 1>(e)
  y = Add(f, x)
}""")


def test_casts_are_counted_and_nodes_are_told_in_the_order_in_which_they_run():
    names = [node.name for node in CASTING.graph.nodes]
    assert casts_in(CASTING) == 2
    assert in_order(CASTING, {names[3], names[1]}) == (names[1], names[3])


@pytest.mark.parametrize(
    ("alone", "limited", "words"),
    [
        (2.5, True, "its rounding alone leaves 2.5x the limit at the outputs"),
        (2.5, False, "its rounding alone leaves a relative error of 250 % at the outputs"),
        (math.inf, True, "its rounding makes NaN or Inf further on"),
        (None, True, "needed together with others"),
    ],
)
def test_a_kept_node_says_what_its_rounding_does(alone, limited, words):
    add = CASTING.graph.nodes[3].name
    stage = types.SimpleNamespace(model=CASTING, precision=Precision.FP16)
    known = types.SimpleNamespace(alone={} if alone is None else {add: None}, ratio=lambda name: alone)
    (found,) = keepings(stage, [add], known, lambda wanted: {}, limited=limited)
    assert (found.node, found.op_type, found.reason) == (add, "Add", words)
    assert (found.alone, found.error_alone) == ((alone, None) if limited else (None, alone))
