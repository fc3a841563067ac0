"""The task metric of a diagnosis: on all inputs, of reference, target and remedy, and what --fix says."""

import numpy as np
import pytest

from diagnosing import ask, step
from tensortriage.compare.task_metric import SampleScore, TaskAccuracy, compare_scores
from tensortriage.errors import DataError
from tensortriage.workflows.diagnosis.accuracies import QUESTION

MODEL = "g (float[1, 3] x) => (float[1, 3] y) <float[3] w = {1, 2, 4}> { y = Mul(x, w) }"
X = np.random.default_rng(0).uniform(0.5, 1.0, (12, 1, 3)).astype(np.float32)
"""Twelve samples, of which a diagnosis looks at eight."""


def test_every_verdict_tells_the_metric_of_all_inputs(tmp_path):
    labels = np.where(np.arange(12) < 9, (X[:, 0] * [1, 2, 4]).argmax(1), 5)  # 9 of 12 are right
    verdict, _ = ask(
        tmp_path, MODEL, {"x": X, "label": labels}, "onnxruntime", random_too=False, fix=tmp_path / "f.onnx",
        metric=lambda outputs, feed, labels: outputs["y"].argmax(1) == labels,
    )  # fmt: skip
    assert verdict.verdict == "match"
    found = verdict.accuracy
    assert (found.reference, found.target, found.comparison.samples) == (0.75, 0.75, 12)
    # Wilson's upper end for none of 12: z^2 / (n + z^2) = 3.84 / 15.84
    assert found.comparison.differing_at_most == pytest.approx(0.2425, abs=1e-3)
    assert step(verdict, QUESTION).answer == found.words
    assert verdict.fix == f"nothing is written to {tmp_path / 'f.onnx'}: nothing is wrong"


def test_a_metric_that_lacks_its_labels_is_refused(tmp_path):
    with pytest.raises(DataError) as caught:
        ask(tmp_path, MODEL, {"x": X}, "onnxruntime", metric=lambda outputs, feed, labels: 1.0)
    assert caught.value.slug == "metric-labels-missing"


def test_means_interval_remedy_and_goal_are_told():
    scores = [SampleScore(str(n), 1.0, float(n % 2)) for n in range(40)]
    accuracy = TaskAccuracy("top1", 1.0, 0.5, compare_scores("target", scores), least=0.9, remedy=0.95)
    assert accuracy.words.startswith("top1: 1 of the reference, 0.5 of the target, 0.95 with the remedy; -0.5 over 40")
    assert "95 % interval -0.6" in accuracy.words
    assert accuracy.words.endswith("at least 0.9 is required")
    assert not accuracy.enough
    one = TaskAccuracy("acc", 1.0, 0.5, compare_scores("target", scores[:1]))
    assert one.words.startswith("acc: 1 of the reference, 0.5 of the target; a single sample gives no interval")
    assert TaskAccuracy("top1", 0.5, 0.5, accuracy.comparison).enough
