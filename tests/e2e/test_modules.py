"""Modules and lines of the source network, wherever nodes are shown and named; the model was exported by torch 2.13."""

import json
from pathlib import Path

import numpy as np
import pytest

from running_cli import triage, verdict_in
from tensortriage.model.model import Model

pytestmark = pytest.mark.lengthy

FOLDER = Path(__file__).resolve().parents[1] / "data" / "torch"
MODEL = FOLDER / "small_transformer.onnx"
LINES = (FOLDER / "small_transformer.py").read_text().splitlines()
WRONG_GELU = """
import onnx, onnxruntime
from onnx import helper

class Session:
    def __init__(self, model):
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    def run(self, feed):
        names = [output.name for output in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, dict(feed))))
    def close(self):
        pass

class Engine:
    def compile(self, path, options):
        model = onnx.load(str(path))
        nodes = []
        for node in model.graph.node:
            nodes.append(node)
            if node.op_type == "Gelu":
                result, node.output[0] = node.output[0], node.output[0] + "_right"
                half = helper.make_tensor(result + "_half", onnx.TensorProto.FLOAT, [], [0.5])
                model.graph.initializer.append(half)
                nodes.append(helper.make_node("Mul", [node.output[0], half.name], [result]))
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        return Session(model)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "wrong_gelu.py").write_text(WRONG_GELU)
    np.savez(tmp_path / "ids.npz", ids=np.arange(6, dtype=np.int64).reshape(1, 6)[:, ::-1])
    return tmp_path


def plain(text):
    """Return text as one line, without the frame around a verdict."""
    return " ".join(text.replace("│", " ").split())


def line_of(code):
    return next(number for number, text in enumerate(LINES, 1) if code in text)


def test_a_verdict_names_module_class_line_and_copies(folder):
    words = ["diagnose", MODEL, "--target", "script:wrong_gelu.py", "--inputs", "ids.npz", "-o", "case"]
    done = triage(*words, cwd=folder)
    assert done.returncode == 1, done.stderr
    verdict = verdict_in(folder / "case")
    culprit = verdict["culprits"][0]
    number = line_of("x + self.mlp(x)")
    # Which of the two copies matters more is up to the numbers.
    assert culprit["origin"]["module"] in ("layers.0.mlp.2", "layers.1.mlp.2")
    assert (culprit["origin"]["module_class"], culprit["origin"]["line"]) == ("GELU", number)
    assert culprit["repeated_module"] == "layers.*.mlp.2"
    words = f"{culprit['origin']['module']} (GELU, small_transformer.py:{number}), wrong in 2 of 2 layers.*.mlp.2"
    assert words in plain(done.stdout)
    for form in ("html", "markdown", "console"):
        shown = triage("report", "case", "--format", form, "-o", f"shown.{form}", cwd=folder)
        assert shown.returncode == 0, shown.stderr
        assert words in plain((folder / f"shown.{form}").read_text())


def test_a_reduction_names_modules(folder):
    words = ["--target", "script:wrong_gelu.py", "--inputs", "ids.npz", "-o", "small.onnx", "--shrink-budget", 0]
    done = triage("debug", "reduce", MODEL, *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert ".mlp.2 (GELU, small_transformer.py:" in done.stdout
    (kept,) = Model.load(folder / "small.onnx").graph.nodes
    assert Model.load(folder / "small.onnx").graph.origin(kept.name).module_class == "GELU"


def test_lint_and_inspect_name_modules(folder):
    listed = triage("inspect", "model", MODEL, "--show", "layers", "--json", cwd=folder)
    layers = json.loads(listed.stdout)["layers"]
    assert {layer["origin"]["module"] for layer in layers} >= {"embedding", "layers.1.attention.o_proj", "head"}
    done = triage("check", "lint", MODEL, "--json", cwd=folder)
    found = [finding for finding in json.loads(done.stdout)["findings"] if finding["node"]]
    graph = Model.load(MODEL).graph
    assert all(finding["origin"]["module"] == graph.origin(finding["node"]).module for finding in found)


def test_a_plan_and_a_comparison_name_modules(folder):
    done = triage("inspect", "plan", MODEL, "--target", "onnxruntime", "--json", cwd=folder)
    label = f"embedding (Embedding, small_transformer.py:{line_of('self.embedding(ids)')})"
    assert label in [module for region in json.loads(done.stdout)["regions"] for module in region["modules"]]
    words = ["--target", "onnxruntime", "--inputs", "ids.npz", "--onnx-outputs", "embedding", "layers.*.mlp.3"]
    shown = triage("run", MODEL, *words, cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert f"{label}: embedding" in shown.stdout
    assert "layers.1.mlp.3 (Linear, small_transformer.py:" in shown.stdout
    rows = json.loads(triage("run", MODEL, *words, "--json", cwd=folder).stdout)["comparisons"][0]["comparison"]["rows"]
    assert rows[0]["module"] == label


def test_options_take_modules(folder):
    done = triage("surgeon", "extract", MODEL, "--scope", "layers.*.mlp", "-o", "mlp.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    graph = Model.load(folder / "mlp.onnx").graph
    assert {graph.origin(node.name).module.split(".")[2] for node in graph.nodes} == {"mlp"}
    words = ["--precision", "fp16", "--keep-nodes", "layers.1.attention", "-o", "typed.onnx"]
    assert triage("convert", MODEL, *words, cwd=folder).returncode == 0
    words = ["--onnx-outputs", "layers.0.attention.o_proj", "layers.*.mlp", "--onnxrt", "--save-outputs", "out.json"]
    done = triage("run", MODEL, *words, "--inputs", "ids.npz", cwd=folder)
    assert done.returncode == 0, done.stderr
    kept = (folder / "out.json").read_text()
    whole = Model.load(MODEL).graph
    ends = [node for node in whole.nodes if whole.origin(node.name).module == "layers.0.attention.o_proj"]
    assert ends[-1].outputs[0] in kept


def test_a_module_that_is_not_there_is_an_error(folder):
    done = triage("run", MODEL, "--onnxrt", "--onnx-outputs", "layers.7.mlp", cwd=folder)
    assert done.returncode == 2
    assert "value-unknown" in done.stderr
