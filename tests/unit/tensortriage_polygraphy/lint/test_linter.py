"""Lint as a whole: where a model is meant to run decides what is a problem."""

import pytest

import models
from running_cli import EXAMPLES
from tensortriage.errors import DataError, ModelError, UsageError
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.dtype import Precision
from tensortriage_polygraphy.lint.linter import lint_model
from tensortriage_polygraphy.lint.request import LintRequest

MASK = EXAMPLES / "digits_vit_mask.onnx"


def report(path, **given):
    return lint_model(LintRequest(model=path, **given))


def severities(found):
    return {finding.slug: finding.severity.value for finding in found.findings}


@pytest.mark.parametrize(
    ("given", "severity"),
    [
        ({}, "hint"),
        ({"formats": (Precision.FP16,)}, "problem"),
        ({"formats": (Precision.BF16,)}, "hint"),
        ({"target": "emulate:precision=fp16"}, "problem"),
        ({"target": None}, "hint"),
    ],
)
def test_where_it_is_meant_to_run(given, severity):
    found = report(MASK, **given)
    assert severities(found)["mask-beyond-range"] == severity
    assert found.passed is (severity == "hint")


def test_nodes_are_counted():
    found = report(MASK)
    assert (len(found.passing), found.failing, found.skipped) == (227, (), ())
    assert report(MASK, target=None).passing == ()


def test_the_worst_comes_first(tmp_path):
    message = models.proto("""
        <ir_version: 10, opset_import: ["": 18, "c": 1]>
        g (float[2] x, float[2] unused) => (float[2] y) { [a] h = Relu(x) [b] y = c.No(h) }""")
    message.graph.node[0].name = message.graph.node[1].name
    found = report(models.write(tmp_path / "m.onnx", message))
    assert [f.severity.value for f in found.findings] == ["exception", "problem", "hint"]


def test_a_bad_model_is_a_finding(tmp_path):
    models.write(tmp_path / "m.onnx", "g (float[2] x) => (float[2] y) { y = Add(x, nowhere) }")
    found = report(tmp_path / "m.onnx")
    assert severities(found) == {"value-undefined": "exception"}
    assert not found.passed


def test_no_model_is_an_error(tmp_path):
    with pytest.raises(ModelError) as caught:
        report(tmp_path / "none.onnx")
    assert caught.value.slug == "model-missing"


def test_engines_that_narrow_integers(tmp_path):
    pytest.importorskip("openvino")
    path = models.write(
        tmp_path / "m.onnx",
        f"""
        g (int64[2] x) => (int64[2] y) <int64[2] w = {{0, {2**40}}}> {{ [a] y = Add(x, w) }}""",
    )
    assert severities(report(path)) == {"int64-beyond-int32": "hint"}
    assert severities(report(path, target="openvino:precision=fp32")) == {"int64-beyond-int32": "problem"}


def test_inputs_that_cannot_be_made_up(tmp_path):
    path = models.write(tmp_path / "m.onnx", "g (seq(float[2]) s) => (int64 n) { n = SequenceLength(s) }")
    found = report(path)
    assert severities(found)["engine-not-asked"] == "hint"
    assert found.passed


def test_a_feed_that_does_not_fit_is_an_error(tmp_path):
    with pytest.raises((DataError, UsageError)):
        report(MASK, feeding=FeedRequest(paths=(str(EXAMPLES / "digits.npz"),), most=1))
