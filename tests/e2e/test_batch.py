"""``triage batch`` end to end: cells in processes of their own, what is kept of them, and how a batch goes on."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from models import mlp
from running_cli import triage

ENGINE = """
import os, time
import numpy as np

class Waits:
    def compile(self, model, options):
        return self
    def run(self, feed):
        while not os.path.exists("go"):
            time.sleep(0.02)
        return {"y": np.zeros((1, 2), np.float32)}
"""
BATCH = """
models: {net: net.onnx}
feeds: {ones: ones.npz}
targets:
  same: onnxruntime
  waits: {engine: "script:engine.py:Waits"}
  none: {engine: litert, optional: true}
commands:
  run: {run: run}
  lint: {run: check lint, options: [--no-engine]}
expect:
  - {target: waits, match: false, note: zeros}
"""


def laid_out(folder):
    mlp().save(folder / "net.onnx")
    np.savez(folder / "ones.npz", x=np.ones((1, 4), np.float32))
    (folder / "engine.py").write_text(ENGINE)
    (folder / "batch.yaml").write_text(BATCH)


def outcomes(done):
    return {cell["name"]: (cell["outcome"], cell["kept"]) for cell in json.loads(done.stdout)["cells"]}


@pytest.mark.lengthy
def test_a_batch_that_was_killed_goes_on_and_runs_only_what_has_changed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "nothing"))  # no environment of LiteRT
    folder = tmp_path / "made"
    folder.mkdir()
    laid_out(folder)
    words = ("batch", "made/batch.yaml", "--case", "study", "--jobs", "2", "--json")
    command = [sys.executable, "-m", "tensortriage", *words]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        for line in running.stderr:
            if "net / lint" in line:  # the cells before it have ended, but for the one that waits
                break
        os.killpg(running.pid, signal.SIGKILL)
    (folder / "go").touch()

    done = triage(*words, "--junit", "junit.xml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert outcomes(done) == {
        "net / ones / same / run": ("as-expected", True),
        "net / ones / waits / run": ("as-expected", False),
        "net / ones / none / run": ("skipped", False),
        "net / lint": ("as-expected", True),
    }
    suite = ElementTree.parse(tmp_path / "junit.xml").find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "0", "1")
    page = (tmp_path / "study/report.html").read_text()
    assert "All as expected" in page
    assert json.loads((tmp_path / "study/batch.json").read_text())["format"] == "tensortriage.batch-result/1"

    np.savez(folder / "ones.npz", x=np.full((1, 4), 2, np.float32))
    (folder / "batch.yaml").write_text(BATCH.replace("match: false", "match: true"))
    done = triage(*words, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert outcomes(done)["net / ones / waits / run"] == ("unexpected", False)
    assert outcomes(done)["net / ones / same / run"] == ("as-expected", False)
    assert outcomes(done)["net / lint"] == ("as-expected", True)
    assert "a problem (expected: nothing wrong)" in done.stderr


@pytest.mark.lengthy
def test_a_cell_that_hangs_is_ended_and_ctrl_c_leaves_what_there_is(tmp_path):
    laid_out(tmp_path)
    only = BATCH.replace("expect:", "exclude: [{target: none}, {target: same}]\nexpect:")
    (tmp_path / "batch.yaml").write_text(only)
    done = triage("batch", "batch.yaml", "--timeout", "4", cwd=tmp_path)
    assert done.returncode == 1
    assert "FAILED   net / ones / waits / run: ended, because it took longer than its time limit" in done.stdout

    command = [sys.executable, "-m", "tensortriage", "batch", "batch.yaml", "--json"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert "net / lint" in running.stderr.readline()
        time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        document = json.loads(running.stdout.read())
    assert running.returncode == 130
    assert {cell["name"]: cell["outcome"] for cell in document["cells"]} == {
        "net / ones / waits / run": "not-run", "net / lint": "as-expected"
    }  # fmt: skip


def test_bad_input_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "batch.toml").write_text("[models]\nnet = 'net.onnx'\n[comands]\n")
    done = triage("batch", "batch.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "error[batch-file-key]" in done.stderr
    assert "did you mean 'commands'?" in done.stderr
    assert not (tmp_path / "triage-batch").exists()


ACCELERATORS = """
import os, time
from tensortriage_testing import SimulatedAccelerator

class Accelerator(SimulatedAccelerator):
    def _open(self, *parts):
        own = os.environ["CUDA_VISIBLE_DEVICES"]
        open(f"used {own}", "w").close()
        while sum(name.startswith("used ") for name in os.listdir()) < 2:  # two cells at once, on one GPU each
            time.sleep(0.02)
        return super()._open(*parts)
"""


def test_cells_side_by_side_have_a_gpu_each(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    laid_out(tmp_path)
    (tmp_path / "accelerators.py").write_text(ACCELERATORS)
    (tmp_path / "batch.toml").write_text("""
        commands = ["run"]
        models = {one = "net.onnx", other = "net.onnx"}
        feeds = {ones = "ones.npz"}
        targets = {accelerator = "script:accelerators.py:Accelerator,precision=fp16,hardware=gpu"}
    """)
    done = triage("batch", "batch.toml", "--jobs", "2", "--timeout", "100", "--json", cwd=tmp_path)
    assert {name for name in os.listdir(tmp_path) if name.startswith("used ")} == {"used GPU-a", "used GPU-b"}
    assert set(outcomes(done).values()) == {("as-expected", False)}, done.stderr


HELPED = """
import helper

class Helped:
    def compile(self, model, options):
        return self
    def run(self, feed):
        return {"y": helper.answer()}
"""
HELPED_BATCH = """
models: {net: net.onnx}
feeds: {ones: ones.npz}
targets:
  helped: "script:helped.py:Helped"
commands:
  run: {run: run}
"""


@pytest.mark.lengthy
def test_a_cell_runs_again_when_asked_to_or_what_its_engine_imports_has_changed(tmp_path):
    laid_out(tmp_path)
    (tmp_path / "helped.py").write_text(HELPED)
    (tmp_path / "helper.py").write_text("import numpy as np\ndef answer():\n    return np.zeros((1, 2), np.float32)\n")
    (tmp_path / "batch.yaml").write_text(HELPED_BATCH)
    found = [outcomes(triage("batch", "batch.yaml", *more, "--json", cwd=tmp_path)) for more in ((), (), ("--fresh",))]
    assert found == [{"net / ones / helped / run": ("unexpected", kept)} for kept in (False, True, False)]
    with (tmp_path / "helper.py").open("a") as file:
        file.write("# mended\n")
    found = [outcomes(triage("batch", "batch.yaml", "--json", cwd=tmp_path)) for _ in range(2)]
    assert found == [{"net / ones / helped / run": ("unexpected", kept)} for kept in (False, True)]
