"""``triage inspect plan`` as users run it, on real engines."""

import json

import pytest

from machine import CRASH, CRASHING, needs_openvino_crash
from running_cli import EXAMPLES, triage

VIT, CNN = EXAMPLES / "digits_vit.onnx", EXAMPLES / "digits_cnn.onnx"


def test_float32_is_built_as_asked(tmp_path):
    done = triage("inspect", "plan", CNN, "--target", "onnxruntime", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Conv, Relu to /Relu (2)" in done.stdout
    assert done.stdout.endswith("as requested: all are\n")


def test_silent_float32_is_a_finding(tmp_path):
    """ONNX Runtime's CPU provider has no fp16 MatMul: it computes in float32 whatever was asked for."""
    done = triage("inspect", "plan", VIT, "--target", "onnxruntime:precision=fp16", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert (document["format"], document["requested"]) == ("tensortriage.plan/1", "fp16")
    matmuls = [region for region in document["regions"] if region["op_types"] == ["MatMul"]]
    assert len(matmuls) == 32
    assert {(r["asked"], r["built"], r["match"]) for r in matmuls} == {("float16", "float32", "wider")}
    executed = [name for region in document["regions"] for name in region["nodes"]]
    assert len(executed) == len({*executed})


def test_openvino_tells_fusions_and_implementations(tmp_path):
    pytest.importorskip("openvino")
    words = ("--target", "openvino:precision=fp32", "--json")
    document = json.loads(triage("inspect", "plan", VIT, *words, cwd=tmp_path).stdout)
    (layer_norm,) = (region for region in document["regions"] if "/norm_pre/Pow" in region["nodes"])
    assert layer_norm["op_types"] == ["ReduceMean", "Sub", "Pow", "Add", "Sqrt", "Div"]
    assert (layer_norm["built"], layer_norm["match"]) == ("float32", "as-asked")
    assert layer_norm["implementation"]


def test_only_findings(tmp_path):
    words = ("--target", "onnxruntime:precision=fp16", "--findings")
    done = triage("inspect", "plan", CNN, *words, cwd=tmp_path)
    assert done.returncode == 1
    regions = [line for line in done.stdout.splitlines() if "not float16" in line]
    assert regions
    assert all(line.startswith("!") for line in regions)
    assert "/Flatten" not in done.stdout


def test_a_crash_is_told(tmp_path):
    needs_openvino_crash()
    done = triage("inspect", "plan", CRASH, "--target", CRASHING, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[engine-crashed]" in done.stderr


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        ((), "target-missing"),
        (("--target", "onnxruntim"), "engine-unknown"),
        (("-t", "onnxruntime:x=1"), "engine-option-unknown"),
    ],
)
def test_a_target_is_needed(tmp_path, words, slug):
    done = triage("inspect", "plan", CNN, *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error[{slug}]" in done.stderr


def test_an_engine_without_plan(tmp_path):
    (tmp_path / "engine.py").write_text(
        "class Mine:\n"
        "    def compile(self, model, options):\n        return Session()\n"
        "class Session:\n    def run(self, feed):\n        return feed\n"
    )
    done = triage("inspect", "plan", CNN, "--target", "script:engine.py:Mine", cwd=tmp_path)
    assert done.returncode == 2
    assert "error[plan-unknown]" in done.stderr
