"""``triage inspect model`` as users run it. Expected numbers are those of examples/README.md."""

import json
import subprocess
import sys

import onnx
import pytest

import models
from running_cli import EXAMPLES, triage

VIT = EXAMPLES / "digits_vit.onnx"


def test_one_screen(tmp_path):
    done = triage("inspect", "model", VIT, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) < 50
    assert "  nodes       273, 15 operators" in lines
    assert "  image  float32  [batch, 1, 8, 8]" in lines
    assert "      from blocks.0 to blocks.3" in lines


def test_json(tmp_path):
    done = triage(
        "inspect", "model", VIT, "--json", "--show", "layers", "weights", "--list-unbounded-dds", cwd=tmp_path
    )
    document = json.loads(done.stdout)
    assert (document["format"], document["nodes"]) == ("tensortriage.model-summary/1", 273)
    assert len(document["layers"]) == 273
    assert sum(weight["nbytes"] for weight in document["weights"]) == document["parameter_bytes"]
    assert document["unbounded_sizes"] == []


def test_layers_with_attributes(tmp_path):
    done = triage("inspect", "model", EXAMPLES / "digits_cnn.onnx", "--show", "layers", "attrs", cwd=tmp_path)
    start = done.stdout.index("node 5  Relu  /block1/Relu_1")
    assert done.stdout[start:].splitlines()[3] == "  node 6  Conv  /block1/conv2/Conv"
    assert "       pads = [1, 1, 1, 1]" in done.stdout
    without = triage("inspect", "model", EXAMPLES / "digits_cnn.onnx", "--show", "layers", cwd=tmp_path)
    assert "pads" not in without.stdout


def test_weights(tmp_path):
    models.write(tmp_path / "m.onnx", "g (float[2] x) => (float[2] y) <float[2] w = {1.5, -2}> { y = Add(x, w) }")
    done = triage("inspect", "model", "m.onnx", "--show", "weights", cwd=tmp_path)
    assert "weight w float32 [2], 8 B\n  min -2, max 1.5, mean -0.25, 0 zeros\n  [ 1.5 -2. ]" in done.stdout


def test_unbounded_sizes(tmp_path):
    models.write(tmp_path / "m.onnx", "g (float[4] x, int64[1] i) => (float[n] y) { [wide] y = Tile(x, i) }")
    done = triage("inspect", "model", "m.onnx", "--list-unbounded-dds", cwd=tmp_path)
    assert done.stdout.endswith("not bounded (1)\n  i  decides the size of Tile wide\n")


def test_missing_weights_matter_only_when_they_are_read(tmp_path):
    message = models.proto("g (float[2] x) => (float[2] y) { y = Add(x, w) }")
    message.graph.initializer.append(models.external_tensor("w", onnx.TensorProto.FLOAT, (2,), "gone.bin"))
    models.write(tmp_path / "m.onnx", message)
    done = triage("inspect", "model", "m.onnx", cwd=tmp_path)
    assert done.returncode == 0
    assert "weights in gone.bin MISSING" in done.stdout
    done = triage("inspect", "model", "m.onnx", "--show", "weights", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[external-data-missing]" in done.stderr


def test_names_cannot_act_on_the_terminal(tmp_path):
    message = models.proto("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    message.graph.name = message.graph.node[0].name = "a\x1b[2Jb"
    message.producer_name = "\x1b]0;title\x07"
    models.write(tmp_path / "m.onnx", message)
    done = triage("inspect", "model", "m.onnx", "--show", "layers", "attrs", cwd=tmp_path)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "a\\x1b[2Jb" in done.stdout


@pytest.mark.parametrize(("words", "slug"), [(("none.onnx",), "model-missing"), ((".",), "model-unreadable")])
def test_what_is_no_model(tmp_path, words, slug):
    done = triage("inspect", "model", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert f"error[{slug}]" in done.stderr


def test_heavy_packages_are_not_imported(tmp_path):
    """onnx_ir and rich take longer to import than all else together."""
    code = (
        "import sys; from tensortriage.cli import cli\n"
        f"cli.main(['inspect', 'model', {str(VIT)!r}], standalone_mode=False)\n"
        "sys.exit(' '.join({'onnx_ir', 'rich', 'onnxruntime', 'msgspec'} & {*sys.modules}) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
