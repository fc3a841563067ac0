import math

import numpy as np

import models
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.cutting.node_selection import NodeChoice
from tensortriage.values.dtype import Precision
from tensortriage.workflows.edits.convert import FormatJudge

ZERO = "g (float[4] x) => (float[4] y) { y = Sub(x, x) }"
FEED = Feed("f", {"x": np.array([1.0, -2.0, 3.0, 4.0], np.float32)}, Origin.REAL)


def judged(target):
    reference = np.zeros(4, np.float32)
    judge = FormatJudge(models.parse(ZERO), Precision.FP16, NodeChoice())
    metrics = {"y": measure(reference, np.asarray(target, np.float32))}
    return judge.judge(FEED, metrics, {"y": reference})["y"]


def test_what_should_be_zero_is_judged_relative_to_the_inputs():
    """Half a unit in the last place of fp16 at 4 is 2**-9; the root mean square of the inputs is 2.7."""
    assert judged([0.0, 0.0, 0.0, 0.0]).within
    assert judged([2**-12, 0.0, 2**-12, 0.0]).within
    assert not judged([0.1, 0.0, 0.0, 0.0]).within


def test_a_nan_is_never_within():
    found = judged([math.nan, 0.0, 0.0, 0.0])
    assert not found.within
