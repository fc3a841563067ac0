"""``triage inspect capability`` as users run it."""

import json

import onnx
import pytest

import models
from machine import CRASH, CRASHING, needs_openvino_crash
from running_cli import EXAMPLES, triage

UNKNOWN = """
<ir_version: 10, opset_import: ["": 18, "c": 1]>
g (float[2] x) => (float[2] y) { [a] h = Relu(x) [b] y = c.No(h) }
"""


def test_a_model_that_builds(tmp_path):
    done = triage("inspect", "capability", EXAMPLES / "digits_vit.onnx", "--target", "onnxruntime", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("onnxruntime builds the whole model: 220 nodes (1 build, ")


def test_pieces_are_written_and_valid(tmp_path):
    models.write(tmp_path / "m.onnx", UNKNOWN)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/supported_subgraph-nodes-7-9.onnx").write_text("of an earlier call")
    (tmp_path / "out/my_supported_subgraph-nodes-7-9.onnx.bak").write_text("mine")
    done = triage("inspect", "capability", "m.onnx", "-t", "onnxruntime", "-o", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert "  c::No: 1 node: build-failed" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "my_supported_subgraph-nodes-7-9.onnx.bak", "results.json", "results.txt",
        "supported_subgraph-nodes-0-0.onnx", "unsupported_subgraph-nodes-1-1.onnx",
    ]  # fmt: skip
    assert (tmp_path / "out/results.txt").read_text() == done.stdout
    piece = onnx.load(tmp_path / "out/supported_subgraph-nodes-0-0.onnx")
    onnx.checker.check_model(piece, full_check=True)
    assert [node.name for node in piece.graph.node] == ["a"]


def test_a_crash_is_an_answer(tmp_path):
    needs_openvino_crash()
    words = ("--target", CRASHING, "--with-partitioning", "--json")
    done = triage("inspect", "capability", CRASH, *words, cwd=tmp_path)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert (document["format"], document["outcome"]) == ("tensortriage.capability/1", "engine-crash")
    assert len(document["pieces"]) > 1


@pytest.mark.parametrize(
    ("words", "slug"),
    [((), "target-missing"), (("-t", "onnxruntime", "-o", "m.onnx"), "output-not-a-directory")],
)
def test_wrong_words(tmp_path, words, slug):
    models.write(tmp_path / "m.onnx", UNKNOWN)
    done = triage("inspect", "capability", "m.onnx", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error[{slug}]" in done.stderr
