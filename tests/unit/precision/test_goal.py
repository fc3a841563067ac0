"""When outputs are good enough: by limits, by the user's tolerance, by a task metric; figures are written out."""

import math

import numpy as np
import pytest

from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.precision.goal import (
    ErrorGoal,
    GoalSample,
    MetricGoal,
    ToleranceGoal,
    failed,
    identity_of,
    mean_metric,
    measured,
)
from tensortriage.runs.task_metric import TaskMetric


def f32(*numbers):
    return np.array(numbers, np.float32)


SAMPLE = GoalSample(Feed("one", {"x": f32(1.0)}, Origin.REAL), {"y": f32(3.0, 4.0), "z": np.array([1, 2, 3, 4])})
OTHER = GoalSample(Feed("two", {"x": f32(2.0)}, Origin.REAL), {"y": f32(1.0)})
LIMITS = ErrorGoal({"y": 0.1, "z": 0.5}, "words")
TOLERANCE = ToleranceGoal(PolygraphyTolerance(atol={"": 0.5}, rtol={"": 0.0}), "words")


def test_the_error_goal_weighs_every_output_by_its_limit():
    goal = ErrorGoal({"y": 0.1, "z": 0.5}, "words")
    result = {"y": f32(3.0, 5.0), "z": np.array([1, 2, 3, 9])}
    reading = goal.judge([SAMPLE], [result])
    assert reading.ratios == pytest.approx((1 / 5 / 0.1, 0.25 / 0.5))  # rms 1/sqrt(2) of 5/sqrt(2); one of four unequal
    assert (reading.output, reading.sample, reading.within) == ("y", "one", False)
    assert goal.judge([SAMPLE], [{"y": SAMPLE.outputs["y"]}]).ratio == np.inf  # z is missing


def test_the_tolerance_goal_asks_the_tolerance():
    goal = ToleranceGoal(PolygraphyTolerance(atol={"": 0.5}, rtol={"": 0.0}), "words")
    near = goal.judge([SAMPLE], [{**SAMPLE.outputs, "y": f32(3.0, 4.25)}])
    far = goal.judge([SAMPLE], [{**SAMPLE.outputs, "y": f32(3.0, 5.0)}])
    assert near.within
    assert near.ratio == pytest.approx(0.5)
    assert not far.within
    assert far.ratio == pytest.approx(2.0)


def test_the_metric_goal_asks_the_metric():
    goal = MetricGoal(TaskMetric.of(lambda outputs, feed: float(outputs["y"][0] + feed["x"][0])), 4.0, "words")
    assert goal.judge([SAMPLE], [SAMPLE.outputs]).metric == 4.0
    assert goal.judge([SAMPLE], [SAMPLE.outputs]).within
    assert not goal.judge([SAMPLE], [{**SAMPLE.outputs, "y": f32(2.0, 4.0)}]).within


def test_a_failed_build_is_not_good_enough():
    assert not failed("refused").within


def test_the_worst_of_several_samples_is_told():
    reading = LIMITS.judge([SAMPLE, OTHER], [SAMPLE.outputs, {"y": f32(1.2)}])
    assert (reading.sample, reading.output, reading.elements) == ("two", "y", 1)
    assert reading.ratios == pytest.approx((0, 0, 2), rel=1e-5)
    assert (reading.ratio, reading.error) == pytest.approx((2.0, 0.2), rel=1e-5)
    assert reading.sqnr_db == pytest.approx(20 * math.log10(5), rel=1e-5)  # a fifth of the signal is noise


def test_a_ratio_of_one_is_just_good_enough():
    goal = ErrorGoal({"y": 0.25}, "words")
    assert goal.judge([OTHER], [{"y": f32(1.25)}]).within
    assert not goal.judge([OTHER], [{"y": f32(1.2501)}]).within


def test_without_room_for_errors_only_equal_outputs_will_do():
    exact = ErrorGoal({"y": 0.0}, "words")
    assert (exact.judge([OTHER], [OTHER.outputs]).ratio, exact.judge([OTHER], [OTHER.outputs]).within) == (0.0, True)
    assert exact.judge([OTHER], [{"y": f32(1.001)}]).ratio == math.inf


@pytest.mark.parametrize("result", [{}, {"y": f32(1.0, 1.0)}])
@pytest.mark.parametrize("goal", [LIMITS, TOLERANCE])
def test_an_output_that_is_missing_or_has_another_shape_is_infinitely_wrong(goal, result):
    assert measured([OTHER], [result]) == [(0, "y", math.inf, None)]
    reading = goal.judge([OTHER], [result])
    assert (reading.within, reading.ratio, reading.error, reading.elements) == (False, math.inf, math.inf, 0)


def test_a_metric_is_the_mean_over_samples_and_sets_no_limit():
    goal = MetricGoal(TaskMetric.of(lambda outputs, feed: float(feed["x"][0])), 1.5, "words")
    reading = goal.judge([SAMPLE, OTHER], [SAMPLE.outputs, {"y": f32(1.5)}])
    assert (reading.metric, reading.within, reading.ratio) == (1.5, True, 0.5)
    assert (goal.limits, LIMITS.limits, TOLERANCE.limits) == (False, True, True)
    assert mean_metric(goal.metric, [SAMPLE, OTHER], [{}, {}]) == 1.5


def test_a_reading_of_a_failure_keeps_the_words_of_the_engine():
    assert (failed("refused").failure, failed("refused").ratio) == ("refused", math.inf)


def test_readings_belong_to_samples_and_goal():
    whole = identity_of([SAMPLE, OTHER], LIMITS)
    assert whole == identity_of([SAMPLE, OTHER], LIMITS)
    assert len({whole, identity_of([SAMPLE], LIMITS), identity_of([OTHER, SAMPLE], LIMITS),
                identity_of([SAMPLE, OTHER], ErrorGoal({}, "other words"))}) == 4  # fmt: skip
