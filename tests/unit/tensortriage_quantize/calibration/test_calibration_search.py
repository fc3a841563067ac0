"""Which calibration is the best one, by which samples, and what becomes of those that refuse."""

import math

import numpy as np
import pytest

import models
import running
from tensortriage.errors import DataError, ModelError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.precision.goal import GoalSample
from tensortriage.runs.lab import Lab
from tensortriage.runs.task_metric import TaskMetric
from tensortriage_quantize.calibration.calibrated_model import Calibration, QuantizeOptions
from tensortriage_quantize.calibration.calibration_search import (
    Tried,
    calibrated,
    errors_of,
    hold_out,
    outputs_of,
)

NET = models.parse("""
    g (float[N, 4] x) => (float[N, 3] y)
    <float[4, 4] w = {1, -1, 0.5, 2, 0.25, 0.125, -3, 1, 2, 1, 1, 1, 0.5, 0.25, 1, 4},
     float[4, 3] v = {1, 0.5, 2, 0.25, 1, 1, 0.5, 2, 1, 1, 1, 0.5}> {
        [first] h = MatMul(x, w)
        [act] a = Relu(h)
        [second] y = MatMul(a, v)
    }""")
FEEDS = [
    Feed(f"f{seed}", {"x": np.random.default_rng(seed).uniform(-2, 2, (8, 4)).astype(np.float32)}, Origin.REAL)
    for seed in range(3)
]
JUDGES = [GoalSample(feed, running.run(NET, feed.tensors)) for feed in FEEDS[1:]]
NARROW = QuantizeOptions(percentile=60.0)
"""Ranges that leave out two fifths of the values: far worse than the largest magnitudes."""
TWO = (Calibration.PERCENTILE, Calibration.MINMAX)


def ways(samples=FEEDS[:1], **given):
    with Lab() as lab:
        return calibrated(NET, samples, JUDGES, lab=lab, **{"options": NARROW, "calibrations": TWO} | given)


def off(outputs, feed):
    """Return the relative RMS error of the output on a feed, which a task metric need not have."""
    right = running.run(NET, feed)["y"]
    return float(np.linalg.norm(outputs["y"] - right) / np.linalg.norm(right))


def test_the_best_is_nearest_to_the_float_model_on_the_samples_that_judge():
    found = ways()
    assert [way.tried.calibration for way in found.found] == ["minmax", "percentile"]
    assert found.best.tried.quantized == 2
    errors = [off(running.run(found.best.model, one.feed.tensors), one.feed.tensors) for one in JUDGES]
    assert found.best.tried.relative_rms_errors == {"y": pytest.approx(max(errors), rel=1e-3)}
    assert found.best.tried.worst < 0.05 < found.found[1].tried.worst
    assert found.best.tried.metric is None
    assert not found.refused


@pytest.mark.parametrize(
    ("metric", "order"),
    [
        (lambda outputs, feed: -off(outputs, feed), ["minmax", "percentile"]),
        (lambda outputs, feed: off(outputs, feed) - 1, ["minmax", "percentile"]),  # better than float is luck
        (lambda outputs, feed: off(outputs, feed) or 1.0, ["percentile", "minmax"]),
        (lambda outputs, feed: math.nan if 0 < off(outputs, feed) < 0.05 else -off(outputs, feed),
         ["percentile", "minmax"]),
    ],
)  # fmt: skip
def test_a_task_metric_decides_before_the_error(metric, order):
    found = ways(metric=TaskMetric.of(metric))
    assert [way.tried.calibration for way in found.found] == order
    for way in found.found:
        scores = [metric(running.run(way.model, one.feed.tensors), one.feed.tensors) for one in JUDGES]
        assert way.tried.metric == pytest.approx(sum(scores) / 2, rel=1e-3, nan_ok=True)


def test_kept_nodes_are_not_counted_and_keeping_all_leaves_nothing_to_quantize():
    assert ways(kept={"first"}, calibrations=TWO[1:]).best.tried.quantized == 1
    with pytest.raises(ModelError) as caught:
        ways(kept={"first", "second", "act"})
    assert caught.value.slug == "quantize-nothing"


def test_a_sample_on_which_an_operand_is_no_number_is_named():
    broken = Feed("broken", {"x": np.float32([[1, np.inf, 0, 0]])}, Origin.REAL)
    with pytest.raises(DataError, match="broken") as caught:
        ways(samples=[FEEDS[0], broken], calibrations=TWO[1:])
    assert caught.value.slug == "quantize-not-finite"


@pytest.mark.parametrize(
    ("count", "calibrate", "judge"),
    [(0, [], []), (3, [0, 1, 2], [0, 1, 2]), (4, [0, 1, 2], [3]), (9, [0, 1, 2, 4, 5, 6, 8], [3, 7])],
)
def test_every_fourth_sample_judges_where_there_are_so_many(count, calibrate, judge):
    assert hold_out(range(count)) == (calibrate, judge)


def test_the_error_is_the_largest_over_samples_by_output():
    right = {"y": np.float32([3, 4]), "z": np.float32([1])}
    near, far = {"y": np.float32([3, 4.5]), "z": np.float32([1])}, {"y": np.float32([3, 5]), "z": np.float32([1])}
    assert errors_of([right] * 2, [far, near]) == {"y": pytest.approx(0.2), "z": 0.0}
    assert errors_of([right], [{"y": np.float32([3])}]) == {"y": math.inf, "z": math.inf}
    assert errors_of([], []) == {}
    assert Tried("minmax", 0, {}, None).worst == 0.0


def test_outputs_are_those_of_a_run():
    with Lab() as lab:
        outputs = outputs_of(NET, FEEDS, lab)
        assert outputs_of(NET, [], lab) == []
    for feed, found in zip(FEEDS, outputs, strict=True):
        np.testing.assert_allclose(found["y"], running.run(NET, feed.tensors)["y"], rtol=1e-6)
