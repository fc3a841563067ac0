"""Is the result good enough in spite of rounding? Asked of real runs in emulated formats."""

import re

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from diagnosing import ask, step
from engine_scripts import engine_file
from models import mlp as small_mlp
from tensortriage.workflows.diagnosis.accuracies import QUESTION as ACCURACY
from tensortriage.workflows.diagnosis.good_enough import QUESTION, grows_most, looks_like_classes
from tensortriage_testing.models import feed_for, mlp

TASK = """
def metric(outputs, feed):
    return float((outputs["logits"] > 0).mean())
"""


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("y", (5, 2), True),  # what a Gemm returns
        ("y", (5, 1), False),
        ("y", (2,), False),
        ("r", (5, 8), False),  # what a Relu returns
        ("class_scores", (1, 7, 9), True),
        ("last_hidden", (5, 2), False),
        ("image_embeds", (5, 2), False),
    ],
)
def test_what_looks_like_classes(name, shape, expected):
    assert looks_like_classes(small_mlp().graph, name, shape) is expected


def test_the_error_grows_where_a_result_exceeds_its_operands():
    """A tenth of three nodes is two at least: an op that adds error, and what makes its operands."""
    graph = small_mlp().graph
    assert grows_most(graph, {"h": 0.01, "r": 0.01, "y": 0.05}) == ("/layer.1/Gemm", "/layer.0/Relu")
    assert grows_most(graph, {"h": 0.01, "r": 0.01, "y": np.inf}) == ("/layer.0/Gemm",)
    assert grows_most(graph, {}) == ()


@pytest.mark.parametrize("precision", ["bf16", "fp8e4m3"])
def test_classes_cosine_and_metric_are_told_where_rounding_explains_the_error(tmp_path, precision):
    file = engine_file(TASK)
    model = mlp()
    target = f"emulate:precision={precision}"
    verdict, _ = ask(tmp_path, model, feed_for(model), target, metric=str(file), random_too=False)
    assert verdict.verdict == "rounding", verdict.summary
    (logits,) = ReferenceEvaluator(model).run(None, feed_for(model))
    right = float(np.mean(logits > 0))
    assert verdict.sufficiency[0].startswith("output 'logits': the same class first in ")
    assert verdict.sufficiency[0].split(" of ")[1].startswith("8 rows")
    assert verdict.sufficiency[1].startswith("cosine 0.9")
    assert verdict.accuracy.reference == pytest.approx(right, abs=1e-3)
    assert step(verdict, ACCURACY).answer == verdict.accuracy.words
    assert step(verdict, QUESTION).answer.startswith(verdict.sufficiency[0])


def test_a_mixed_model_is_told_where_it_leaves_much_less(tmp_path):
    """Scores around 100 are rounded to halves in bf16, which Softmax turns into errors of a quarter."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[4, 64] x, float[64, 8] w, float[1] hundred)
        => (float[4, 8] scores) { y = MatMul(x, w)  far = Add(y, hundred)  scores = Softmax(far) }"""
    )
    rng = np.random.default_rng(0)
    feed = {
        "x": rng.normal(size=(4, 64)).astype(np.float32),
        "w": rng.normal(size=(64, 8)).astype(np.float32) / 8,
        "hundred": np.array([100.0], np.float32),
    }
    verdict, _ = ask(tmp_path, model, feed, "emulate:precision=bf16", random_too=False)
    assert verdict.verdict == "rounding", verdict.summary
    assert re.match(r"a mixed model with 2 ops of 3 in fp32 would be off by 0\.\d+ %", verdict.sufficiency[-1])
