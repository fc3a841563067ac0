"""``triage check lint`` as users run it."""

import json

import pytest

import models
from running_cli import EXAMPLES, triage

MASK = EXAMPLES / "digits_vit_mask.onnx"


def test_hints_only(tmp_path):
    done = triage("check", "lint", EXAMPLES / "digits_vit.onnx", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("hint[layernorm-decomposed], 10 times\n  Pow '/norm_pre/Pow': ")
    assert done.stdout.endswith("0 exceptions, 0 problems, 10 hints; onnxruntime runs 220 of 220 nodes\n")


def test_a_format_makes_problems_of_hints(tmp_path):
    done = triage("check", "lint", MASK, "--precision", "fp16", "bf16", "--no-engine", "--json", cwd=tmp_path)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert (document["format"], document["passed"], document["formats"]) == (
        "tensortriage.lint/1",
        False,
        ["fp16", "bf16"],
    )
    first = document["findings"][0]
    assert (first["slug"], first["severity"], first["node"]) == ("mask-beyond-range", "problem", "/attention_bias/Mul")


def test_every_faulty_node_and_polygraphys_report(tmp_path):
    models.write(tmp_path / "m.onnx", """
        <ir_version: 10, opset_import: ["": 18, "c": 1]>
        g (float[2] x) => (float[2] y, float[2] z) { [a] y = c.No(x) [b] z = c.Neither(x) }""")  # fmt: skip
    done = triage("check", "lint", "m.onnx", "-o", "report.json", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("exception[engine-refuses], 2 times\n  No 'a': ")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["summary"] == {"passing": [], "failing": ["a", "b"]}
    assert [(entry["level"], entry["nodes"]) for entry in report["lint_entries"]] == [
        ("exception", ["a"]),
        ("exception", ["b"]),
    ]


def test_inputs_and_options_of_onnx_runtime(tmp_path):
    words = ("--inputs", EXAMPLES / "digits.npz", "--providers", "cpu", "--graph-optimization-level", "ORT_DISABLE_ALL")
    done = triage("check", "lint", EXAMPLES / "digits_cnn.onnx", *words, cwd=tmp_path)
    assert done.returncode == 0
    assert "onnxruntime:providers=cpu,optimization=none runs 22 of 22 nodes" in done.stdout


@pytest.mark.parametrize(
    ("words", "slug", "code"),
    [
        (("none.onnx",), "model-missing", 2),
        ((MASK, "--precision", "fp17"), "precision-unknown", 2),
        ((MASK, "--target", "nothing"), "engine-unknown", 2),
        ((MASK, "--inputs", EXAMPLES / "digits.npz"), "feed-input-missing", 2),
    ],
)
def test_wrong_words(tmp_path, words, slug, code):
    done = triage("check", "lint", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert f"error[{slug}]" in done.stderr, done.stderr
