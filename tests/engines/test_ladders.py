"""Rungs of configuration and optimizer passes, asked of the real engines."""

from pathlib import Path

import numpy as np
import pytest

import models
from tensortriage.engines.capabilities import NamesPasses, OffersLadder
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.script import ScriptEngine
from tensortriage_engines.openvino.engine import OpenVinoEngine
from tensortriage_testing import FaultyEngine

pytestmark = pytest.mark.lengthy

GELU = """
    g (float[4, 8] x) => (float[4, 8] y) <float root = {1.4142135}, float one = {1}, float half = {0.5}> {
        [div] d = Div(x, root)
        [erf] e = Erf(d)
        [add] a = Add(e, one)
        [mul] m = Mul(x, a)
        [half] y = Mul(m, half)
    }"""
APPROXIMATION = {"config.optimization.enable_gelu_approximation": "1"}


@pytest.fixture
def gelu(tmp_path):
    return models.write(tmp_path / "gelu.onnx", GELU)


def test_the_passes_that_change_a_model_are_told_and_can_be_left_out(gelu):
    engine = OnnxRuntimeEngine()
    assert isinstance(engine, NamesPasses)
    names = engine.passes(gelu, APPROXIMATION)
    # The ops of the decomposed form become one Gelu, and that the approximation.
    assert [name for name in names if "Gelu" in name] in (
        ["GeluFusionL2", "GeluApproximation"],
        ["GeluFusionL1", "GeluApproximation"],
    )
    assert engine.passes(gelu, {"optimization": "none"}) == ()
    left = engine.without({**APPROXIMATION, "disabled_optimizers": "MatMulAddFusion"}, ["GeluApproximation"])
    assert left["disabled_optimizers"] == "MatMulAddFusion+GeluApproximation"
    assert "GeluApproximation" not in engine.passes(gelu, left)


def test_leaving_a_pass_out_gives_the_answer_without_it(gelu):
    feed = {"x": np.linspace(-3, 3, 32, dtype=np.float32).reshape(4, 8)}
    engine = OnnxRuntimeEngine()
    results = []
    for options in ({"optimization": "none"}, APPROXIMATION, engine.without(APPROXIMATION, ["GeluApproximation"])):
        session = engine.compile(gelu, options)
        results.append(session.run(feed)["y"])
        session.close()
    right, approximate, cured = results
    assert np.abs(approximate - right).max() > 1e-5  # the tanh form is off by up to 4.7e-4 (Hendrycks, Gimpel 2016)
    np.testing.assert_allclose(cured, right, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({}, ["none", "basic", "extended", "layout", "all"]),
        ({"optimization": "extended"}, ["none", "basic", "extended"]),
        ({"optimization": "none"}, ["none"]),
    ],
    ids=str,
)
def test_the_rungs_of_onnx_runtime_end_with_what_was_asked(options, labels):
    engine = OnnxRuntimeEngine()
    assert isinstance(engine, OffersLadder)
    rungs = engine.ladder({**options, "threads": "1"})
    assert [label for label, _ in rungs] == [f"optimization={label}" for label in labels]
    assert all(given["threads"] == "1" for _, given in rungs)
    assert rungs[-1][1] == {**options, "threads": "1"}


def test_a_narrow_format_is_tried_in_fp32_first():
    rungs = OnnxRuntimeEngine().ladder({"precision": "fp16", "optimization": "basic"})
    assert [given["precision"] for _, given in rungs] == ["fp32", "fp32", "fp16", "fp16"]


def test_the_rungs_of_openvino_are_options_it_understands(gelu):
    engine = OpenVinoEngine()
    if not engine.availability().usable:
        pytest.skip("OpenVINO is not installed")
    rungs = engine.ladder({"threads": "1"})
    assert rungs[-1][1] == {"threads": "1"}
    assert all(given["precision"] == "fp32" for _, given in rungs[:-1])
    session = engine.compile(gelu, rungs[0][1])
    assert session.run({"x": np.zeros((4, 8), np.float32)})["y"].shape == (4, 8)
    session.close()


def test_a_script_may_have_a_ladder_of_its_own(tmp_path: Path):
    file = tmp_path / "faulty.py"
    file.write_text("from tensortriage_testing import FaultyEngine as Engine\n")
    options = {"file": str(file), "kind": "scale", "node": "mul"}
    rungs = ScriptEngine().ladder(options)
    assert rungs == [(label, {**options, **given}) for label, given in FaultyEngine().ladder(options_of(options))]
    plain = tmp_path / "plain.py"
    plain.write_text("class Engine:\n    def compile(self, model, options): ...\n")
    assert ScriptEngine().ladder({"file": str(plain)}) == [("as given", {"file": str(plain)})]
    optimized = {"file": str(plain), "optimization": "O3"}
    assert ScriptEngine().ladder(optimized) == [
        ("optimization=none", {**optimized, "optimization": "none"}), ("optimization=O3", optimized),
    ]  # fmt: skip


def options_of(options):
    return {key: value for key, value in options.items() if key != "file"}
