"""Reducing with golden values made ahead of time, as the guide pastes it: on a model whose engine is at fault."""

import json
import sys

import numpy as np
import onnx
import pytest

from running_cli import EXAMPLES, triage

MODEL = EXAMPLES / "digits_cnn.onnx"
GUILTY = "/block2/conv1/Conv"
ENGINE = f"script:planted.py,node={GUILTY},kind=scale"
TRIAGE = [sys.executable, "-c", "from tensortriage.cli import main; main()"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "planted.py").write_text("from tensortriage_testing import FaultyEngine as Engine\n")
    return tmp_path


@pytest.mark.lengthy
def test_golden_values_of_all_layers_lead_to_the_guilty_one(folder):
    """Every piece gets the golden values at its inputs, and is compared with those at its outputs."""

    def ran(*words):
        done = triage("polygraphy", *words, cwd=folder, timeout=600)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    ran("run", MODEL, "--onnxrt", "--save-inputs", "inputs.json", "--onnx-outputs", "mark", "all",
        "--save-outputs", "layerwise_golden.json", "--seed", "1")  # fmt: skip
    ran("data", "to-input", "inputs.json", "layerwise_golden.json", "-o", "layerwise_inputs.json")
    check = [*TRIAGE, "run", "polygraphy_debug.onnx", "--target", ENGINE, "--load-inputs", "layerwise_inputs.json",
             "--load-outputs", "layerwise_golden.json", "--atol", "1e-3", "--rtol", "1e-3"]  # fmt: skip
    ran("debug", "reduce", MODEL, "-o", "reduced.onnx", "--mode", "bisect", "--load-inputs", "layerwise_inputs.json",
        "--artifacts", "polygraphy_debug.onnx", "--fail-code", "1", "--check", *check)  # fmt: skip
    assert GUILTY in [node.name for node in onnx.load(folder / "reduced.onnx").graph.node]
    sorted_out = [len(list((folder / "polygraphy_artifacts" / word).iterdir())) for word in ("good", "bad")]
    assert min(sorted_out) > 0


def test_layers_are_validated(folder):
    """A logarithm of what a Relu makes 0 is infinite in the middle of the model, and its reciprocal 0 at the end."""

    def node(op, source, result):
        return onnx.helper.make_node(op, [source], [result], op)

    value = onnx.helper.make_tensor_value_info
    nodes = [node("Relu", "x", "r"), node("Log", "r", "l"), node("Reciprocal", "l", "y")]
    graph = onnx.helper.make_graph(nodes, "g", [value("x", 1, [4])], [value("y", 1, [4])])
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "m.onnx")
    np.savez(folder / "x.npz", x=np.float32([-1, 2, 3, 4]))
    words = ["polygraphy", "run", "m.onnx", "--onnxrt", "--load-inputs", "x.npz", "--validate"]
    assert triage(*words, cwd=folder).returncode == 0
    done = triage(*words, "--onnx-outputs", "mark", "all", "--save-outputs", "layers.json", cwd=folder)
    assert done.returncode == 1
    assert "FAILED | Output: 'l'" in done.stdout
    ((_, iterations),) = json.loads((folder / "layers.json").read_text())["lst"]
    assert sorted(iterations[0]["outputs"]) == ["l", "r", "y"]
