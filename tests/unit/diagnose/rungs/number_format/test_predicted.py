"""Rounding explains outputs of few elements easily: what is seen inside has to be explained as well."""

import numpy as np
import pytest
from onnx import numpy_helper

from diagnosing import ask, named, step
from engine_scripts import engine_file
from tensortriage.engines.cpu_features import computes_bf16
from tensortriage.values.store import stored

MODEL = """<ir_version: 8, opset_import: ["": 17]> main (float[64, 48] x) => (float[1, 2] y) {
    hidden = MatMul(x, w)
    bent = Tanh(hidden)
    mixed = MatMul(bent, u)
    again = Tanh(mixed)
    two = MatMul(again, v)
    y = ReduceMean<axes = [0]>(two)
}"""
"""Two numbers come out: by chance alone they may be 21 dB beyond their prediction."""


def model():
    rng = np.random.default_rng(5)
    made = named(MODEL, "first", "bend", "second", "bend_again", "third", "mean")
    for name, shape in (("w", (48, 32)), ("u", (32, 32)), ("v", (32, 2))):
        made.graph.initializer.append(numpy_helper.from_array(rng.normal(0, 0.2, shape).astype(np.float32), name))
    return made


WIDE = """<ir_version: 8, opset_import: ["": 17]> main (float[64, 48] x) => (float[64, 32] y) {
    hidden = MatMul(x, w)
    y = Tanh(hidden)
}"""

FEED = {"x": np.random.default_rng(6).normal(size=(64, 48)).astype(np.float32)}


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("target", "expected"),
    [("emulate:precision=bf16", "rounding"), ("fault:kind=scale,node=first,amount=1.5,precision=bf16", "local-fault")],
)
def test_layers_are_asked_for_only_where_the_outputs_settle_nothing(tmp_path, target, expected):
    wide = named(WIDE, "first", "bend")
    weight = np.random.default_rng(5).normal(0, 0.2, (48, 32)).astype(np.float32)
    wide.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    verdict, report = ask(tmp_path, wide, FEED, target)
    assert verdict.verdict == expected, verdict.summary
    asked = not step(verdict, "what do the layers look like?").answer.startswith("skipped")
    assert asked == report.has_layer_errors == (expected != "rounding")
    recorded = {name for folder in (tmp_path / "case" / "runs").iterdir() for name in stored(folder).names()}
    assert recorded == ({"hidden", "y"} if asked else {"y"})
    assert report.ranges.tensors == 3  # a weight and two results


@pytest.mark.lengthy
@pytest.mark.engine
@pytest.mark.skipif(not computes_bf16(), reason="OpenVINO computes in fp32 here")
@pytest.mark.parametrize("asked", [False, True])
def test_a_format_that_nobody_asked_for_is_said_to_be_the_engine_s_own(tmp_path, asked):
    pytest.importorskip("openvino")
    wide = named(WIDE, "first", "bend")
    weight = np.random.default_rng(5).normal(0, 0.2, (48, 32)).astype(np.float32)
    wide.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    verdict, _ = ask(tmp_path, wide, FEED, "openvino:precision=bf16" if asked else "openvino")
    assert verdict.verdict == "rounding", verdict.summary
    told = "openvino chooses bf16 here by itself, openvino:precision=fp32 is in fp32"
    assert (told in verdict.summary) is not asked


@pytest.mark.lengthy
@pytest.mark.parametrize(("node", "amount"), [("first", 1.02), ("second", 0.97)])
def test_a_fault_that_the_outputs_would_hide(tmp_path, node, amount):
    target = f"fault:kind=scale,node={node},amount={amount},precision=bf16"
    verdict, _ = ask(tmp_path, model(), FEED, target)
    assert "inside is off by" in step(verdict, "does rounding to bf16 explain the error?").answer
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", node), verdict.summary


@pytest.mark.lengthy
def test_what_the_engine_does_at_most_ops_of_a_kind_is_no_fault_of_one(tmp_path):
    """Sums cut off in float16 after every 4 products: every MatMul is a little beyond its floor."""
    file = engine_file("from tensortriage_testing import SimulatedAccelerator as Engine\n")
    options = "precision=fp16,accumulator=fp16,block=4,rounding=zero"
    verdict, _ = ask(tmp_path, model(), FEED, f"script:{file},{options}")
    assert verdict.verdict == "rounding", verdict.summary


def test_without_a_fault_it_is_rounding(tmp_path):
    verdict, _ = ask(tmp_path, model(), FEED, "emulate:precision=bf16")
    assert verdict.verdict == "rounding", verdict.summary
    assert "inside" not in step(verdict, "does rounding to bf16 explain the error?").answer
