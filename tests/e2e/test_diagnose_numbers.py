"""What ``triage diagnose`` tells about numbers, from the command line: patterns, rules, ranges, quantizers."""

import json

import numpy as np
import pytest
from onnx import numpy_helper

from models import proto
from running_cli import EXAMPLES, triage, verdict_in
from tensortriage_testing import feed_for, mlp, quantized, save_model

pytestmark = pytest.mark.slow

ENGINE = "onnxruntime:optimization=basic"
"""Integer arithmetic, but not the kernels that add uint8 x int8 in saturating int16 on some CPUs."""


def test_a_quantizer_that_does_not_fit(tmp_path):
    model = mlp()
    feed = feed_for(model)
    small = quantized(model, feed)
    node = [node for node in small.graph.node if node.op_type == "QuantizeLinear"][1]
    scale = next(tensor for tensor in small.graph.initializer if tensor.name == node.input[1])
    scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale) / np.float32(16), scale.name))
    save_model(model, tmp_path / "m.onnx")
    save_model(small, tmp_path / "q.onnx")
    np.savez(tmp_path / "m.npz", **feed)
    words = ["m.onnx", "--inputs", "m.npz", "--target", ENGINE, "--target-model", "q.onnx", "--case", "case"]
    done = triage("diagnose", *words, "--fix", "fixed.onnx", cwd=tmp_path)
    found = verdict_in(tmp_path / "case")
    assert (found["verdict"], done.returncode) == ("quantization", 1), done.stdout + done.stderr
    assert found["culprits"][0]["node"] == node.name
    assert "its scale is too small" in " ".join(done.stdout.replace("│", " ").split())  # wherever its lines end
    assert "calibrate again" in " ".join(done.stdout.split())
    assert found["remedy"]["kind"] == "calibrate"
    assert found["remedy"]["error_after"] < 0.1 * found["remedy"]["error_before"]
    again = triage(
        "diagnose", *[{"q.onnx": "fixed.onnx"}.get(word, word) for word in words[:-1]], "again", cwd=tmp_path
    )
    assert (verdict_in(tmp_path / "again")["verdict"], again.returncode) == ("rounding", 0), again.stdout
    page = (tmp_path / "case" / "report.html").read_text()
    assert "its scale is too small" in page


@pytest.mark.lengthy
def test_a_rule_a_pattern_and_a_range(tmp_path):
    model = proto("main (float[4, 8] x) => (float[4, 8] y) { a = Exp(x)\n b = Exp(a)\n y = Log(b) }")
    for node, name in zip(model.graph.node, ("inner", "outer", "log"), strict=True):
        node.name = name
    save_model(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "m.npz", x=np.linspace(0, 2.7, 32, dtype=np.float32).reshape(4, 8))  # exp(exp(2.7)) = 2.9e6
    words = ["m.onnx", "--inputs", "m.npz", "--target", "emulate:precision=fp16", "--case", "case"]
    done = triage("diagnose", *words, cwd=tmp_path)
    found = verdict_in(tmp_path / "case")
    assert (found["verdict"], found["culprits"][0]["node"], done.returncode) == ("range-overflow", "outer", 1)
    said = " ".join(done.stdout.split())
    assert "what can fp16 not hold? 1 of 3 tensors: Exp 'outer' reaches 2.9" in said
    assert "is Inf: exp(" in said
    assert any("exactly where the reference's magnitude exceeds" in s for s in found["culprits"][0]["anatomy"])
    ranges = json.loads((tmp_path / "case" / "ranges.json").read_text())
    assert ranges["format"] == "tensortriage.ranges/1"
    markdown = triage("report", "case", "--format", "markdown", cwd=tmp_path).stdout
    assert "### What fp16 cannot hold" in markdown


@pytest.mark.lengthy
def test_rounding_is_shown_as_predicted(tmp_path):
    words = [EXAMPLES / "digits_cnn.onnx", "--inputs", EXAMPLES / "digits.npz", "--target", "emulate:precision=bf16"]
    done = triage("diagnose", *words, "--case", "case", cwd=tmp_path)
    assert done.returncode == 0
    assert "as predicted" in done.stdout
    assert "OUTSIDE" not in done.stdout
    assert "infx" not in done.stdout
