"""Ops that are wrong only together: found in the plan or in windows, shrunk, cured by marking a tensor."""

import json

import numpy as np
import pytest

from running_cli import EXAMPLES, triage, verdict_in
from tensortriage.model.model import Model
from tensortriage_testing import FaultyEngine, encoder, feed_for, save_model

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

ENGINE = "from tensortriage_testing import FaultyEngine as Engine\n"
CONV, ADD, RELU = "/block2/conv1/Conv", "/block2/Add", "/block2/Relu_1"


def logits(model, options, feed):
    session = FaultyEngine().compile(model, options)
    try:
        return session.run(feed)["logits"]
    finally:
        session.close()


def diagnosed(tmp_path, model, inputs, target, *words):
    (tmp_path / "planted.py").write_text(ENGINE)
    done = triage("diagnose", model, "--inputs", inputs, "--target", target, "--case", "case", *words, cwd=tmp_path)
    return done, verdict_in(tmp_path / "case")


def planted(tmp_path, options, *words):
    target = "script:planted.py,kind=scale,amount=1.5," + options
    return diagnosed(tmp_path, EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits.npz", target, *words)


@pytest.mark.parametrize(
    ("options", "ops"),
    [
        (f"node={CONV},fused_with={RELU}", {CONV, RELU}),
        (f"node={CONV},fused_with={RELU},plan=false", {CONV, RELU}),
    ],
    ids=["told-by-the-plan", "found-in-windows"],
)
def test_two_ops_that_are_wrong_only_together_are_named_and_the_patched_model_is_right(tmp_path, options, ops):
    done, found = planted(tmp_path, options, "--emit-breakers", "patched.onnx")
    assert (found["verdict"], done.returncode) == ("fusion-fault", 1), done.stdout + done.stderr
    assert {culprit["node"] for culprit in found["culprits"]} == ops
    assert found["breakers"] == [f"{CONV}_output_0"]
    assert "breakers: patched.onnx has 1 more output" in done.stdout
    patched = tmp_path / "patched.onnx"
    assert [spec.name for spec in Model.load(patched).outputs] == ["logits", f"{CONV}_output_0"]
    # What the faulty engine makes of the patched model is what the healthy one makes of the original.
    feed = dict(np.load(EXAMPLES / "digits.npz"))
    fault = dict(word.split("=", 1) for word in f"kind=scale,amount=1.5,{options}".split(","))
    original = EXAMPLES / "digits_cnn.onnx"
    cured, right, wrong = (logits(*case, feed) for case in ((patched, fault), (original, {}), (original, fault)))
    np.testing.assert_array_equal(cured, right)
    assert not np.allclose(wrong, right, rtol=1e-3)
    assert f"{CONV}_output_0" in (tmp_path / "case" / "report.html").read_text()
    for form in ("markdown", "console"):
        shown = triage("report", "case", "--format", form, cwd=tmp_path).stdout
        assert "Fusion breakers" in shown
        assert f"{CONV}_output_0" in shown


def test_a_real_approximation_is_named_with_its_ops_its_pass_and_what_works(tmp_path):
    # ONNX Runtime fuses the decomposed Gelu and puts the tanh form in its place, which is 1e-4 off.
    model = encoder(layers=1, width=32, heads=2, tokens=8, batch=1)
    save_model(model, tmp_path / "model.onnx")
    np.savez(tmp_path / "feed.npz", **feed_for(model))
    target = "onnxruntime:config.optimization.enable_gelu_approximation=1"
    done, found = diagnosed(tmp_path, "model.onnx", "feed.npz", target)
    assert (found["verdict"], done.returncode) == ("fusion-fault", 1), done.stdout + done.stderr
    assert [culprit["op_type"] for culprit in found["culprits"]] == ["Erf", "Div", "Add", "Mul", "Mul"]
    assert "its tanh approximation" in found["culprits"][0]["reason"]  # which is why the Erf comes first
    assert found["breakers"]
    step = next(step for step in found["steps"] if step["question"].startswith("in which configuration"))
    assert step["evidence"]["passes"][-1] == "GeluApproximation"
    assert any("disabled_optimizers=GeluApproximation" in line for line in found["next"])
    cured = triage(
        "diagnose", "model.onnx", "--inputs", "feed.npz", "--target", step["evidence"]["works"], cwd=tmp_path
    )
    assert cured.returncode == 0, cured.stdout + cured.stderr


def test_a_fault_of_one_op_at_high_optimization_is_told_with_the_level_that_works(tmp_path):
    done, found = planted(tmp_path, f"node={CONV},from_level=all")
    assert (found["verdict"], done.returncode) == ("local-fault", 1), done.stdout + done.stderr
    step = next(step for step in found["steps"] if step["question"].startswith("in which configuration"))
    assert step["answer"] == "right with optimization=basic, wrong with optimization=all"
    assert any("optimization=basic" in line for line in found["next"])


def test_a_fault_that_needs_the_whole_model_stays_open(tmp_path):
    (tmp_path / "whole.py").write_text(
        "import onnx\n"
        "from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine\n"
        "class Session:\n"
        "    def __init__(self, session, factor): self.session, self.factor = session, factor\n"
        "    def run(self, feed):\n"
        "        return {name: array * self.factor for name, array in self.session.run(feed).items()}\n"
        "class Engine:\n"
        "    def compile(self, model, options):\n"
        "        graph = onnx.load(model).graph\n"
        "        whole = [value.name for value in graph.input] == ['image'] and len(graph.node) > 9\n"
        "        return Session(OnnxRuntimeEngine().compile(model, {'optimization': 'none'}), 1.01 if whole else 1.0)\n"
    )
    done, found = diagnosed(
        tmp_path, EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits.npz", "script:whole.py", "--emit-breakers", "p.onnx"
    )
    assert (found["verdict"], done.returncode) == ("inconclusive", 4), done.stdout + done.stderr
    assert found["breakers"] == []
    assert not (tmp_path / "p.onnx").exists()
    assert "none found" in done.stdout
    assert json.loads((tmp_path / "case" / "verdict.json").read_text())["culprits"] == []
