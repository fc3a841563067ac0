"""Metrics by name, script and function: what they are given, and what goes wrong with them."""

import numpy as np
import pytest

from tensortriage.errors import DataError, UsageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.runs.task_metric import TaskMetric, labels_by_name

OUT = {"logits": np.float32([[0, 1], [1, 0]]), "other": np.float32([[1, 0], [1, 0]])}


def feed(**labels):
    return Feed("f", {"x": np.zeros(2)}, Origin.REAL, labels)


LABELLED = feed(label=np.array([1, 1]))


def with_labels(outputs, feed, labels):
    return (outputs["logits"].argmax(1) == labels).mean()


def by_row(outputs, feed, truth, reference):
    return (outputs["logits"].argmax(1) == truth) & (reference["logits"].argmax(1) == truth)


def test_a_function_is_given_what_it_takes():
    assert TaskMetric.of(lambda outputs, feed: feed["x"].size).scores(OUT, LABELLED, {}) == (2.0,)
    assert TaskMetric.of(lambda outputs, feed, threshold=3.0: threshold).scores(OUT, feed(), {}) == (3.0,)
    assert TaskMetric.of(with_labels).scores(OUT, LABELLED, {}) == (0.5,)
    assert TaskMetric.of(by_row).scores(OUT, LABELLED, OUT) == (1.0, 0.0)
    assert TaskMetric.of(lambda outputs, feed, labels=None: labels is None).scores(OUT, feed(), {}) == (1.0,)
    assert TaskMetric.of(lambda outputs, feed, reference: len(reference)).scores(OUT, feed(), OUT) == (2.0,)


def test_a_script_is_given_the_same(tmp_path):
    path = tmp_path / "acc.py"
    path.write_text("def metric(outputs, feed, labels):\n    return (outputs['logits'].argmax(1) == labels)\n")
    metric = TaskMetric.of(str(path))
    assert metric.scores(OUT, LABELLED, {}) == (1.0, 0.0)
    assert metric.mean([(OUT, LABELLED, {}), (OUT, feed(label=np.array([1, 0])), {})]) == 0.75
    before = metric.identity
    path.write_text("def metric(outputs, feed, labels):\n    return 1.0\n")
    assert TaskMetric.of(str(path)).identity != before


def test_functions_are_told_apart_by_what_they_do():
    one, same, other = (TaskMetric.of(f).identity for f in (lambda o, f: 1.0, lambda o, f: 1.0, lambda o, f: 2.0))
    assert one == same != other


def test_registered_ones_go_by_name_and_output():
    assert TaskMetric.of("top1").scores(OUT, LABELLED, {}) == (1.0, 0.0)
    assert TaskMetric.of("top1:other").scores(OUT, LABELLED, OUT) == (0.0, 0.0)
    assert TaskMetric.of("top1").scores(OUT, feed(), OUT) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("given", "cure"), [("cosin", "did you mean 'cosine'?"), ("acuracy", "boxes, cosine, tokens, top1, top5")]
)
def test_a_name_that_is_none_is_told_with_those_there_are(given, cure):
    with pytest.raises(UsageError) as caught:
        TaskMetric.of(given)
    assert caught.value.slug == "metric-unknown"
    assert cure in caught.value.cure


@pytest.mark.parametrize(
    ("metric", "at", "slug"),
    [
        (with_labels, feed(), "metric-labels-missing"),
        ("top1", feed(), "metric-failed"),  # neither labels nor a reference
        ("top1:none", LABELLED, "metric-unknown"),
        (lambda outputs, feed: {}["missing"], LABELLED, "metric-failed"),
        (lambda outputs, feed: "high", LABELLED, "metric-failed"),
    ],
)
def test_what_goes_wrong_is_told(metric, at, slug):
    with pytest.raises(DataError) as caught:
        TaskMetric.of(metric).scores(OUT, at, {})
    assert caught.value.slug == slug
    assert caught.value.cure


def test_labels_are_those_with_a_usual_name_else_all_that_is_no_input():
    several = {"image_id": np.array(3), "Labels": np.array([1]), "boxes": np.zeros((1, 4))}
    assert list(labels_by_name(feed(**several))) == ["Labels", "boxes"]
    assert list(labels_by_name(feed(answer=np.array([1])))) == ["answer"]
    assert TaskMetric.of(with_labels).identity_on([LABELLED]) != TaskMetric.of(with_labels).identity_on(
        [feed(label=np.array([0, 1]))]
    )
