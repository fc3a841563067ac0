"""The plugin in a pytest of its own: what a failing test prints, also in parallel, and that collecting stays light."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lengthy

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TESTS = f"""
from tensortriage_fleet.assertions import assert_sound

CNN = {str(EXAMPLES / "digits_cnn.onnx")!r}
FEED = {str(EXAMPLES / "digits.npz")!r}

def test_sound():
    assert_sound(CNN, target="onnxruntime", inputs=FEED)

def test_broken():
    assert_sound(CNN, target="onnxruntime", inputs=FEED, target_model=CNN.replace("cnn", "cnn_broken"))
"""


def ran(folder, *words):
    (folder / "test_models.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "test_models.py", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [(), ("-n", "2")])
def test_a_failure_prints_the_verdict_and_no_repr(tmp_path, words):
    done = ran(tmp_path, *words)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "model-changed, 100 %" in done.stdout
    assert "culprit: Conv '/block2/conv1/Conv'" in done.stdout
    assert "checks.py" not in done.stdout  # its own frames are hidden
    cases = tmp_path / ".pytest_cache" / "d" / "triage"
    assert len(list(cases.iterdir())) == 2  # one for each test


def test_collecting_imports_nothing_heavy(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "import sys\ndef pytest_collection_finish():\n"
        "    print('heavy:', sorted({'onnx', 'onnxruntime', 'numpy', 'rich', 'click', 'msgspec'} & set(sys.modules)))\n"
    )
    done = ran(tmp_path, "--collect-only", "-s")
    assert "heavy: []" in done.stdout, done.stdout


BASELINES = f"""
import numpy as np
import pytest

CNN = {str(EXAMPLES / "digits_cnn.onnx")!r}
IMAGES = np.load({str(EXAMPLES / "digits.npz")!r})["image"][:2]

@pytest.mark.parametrize("target", ["onnxruntime", "float64"])
def test_kept(triage, target):
    triage.check("net.onnx", target, inputs="digits.npz")

def test_arrays(triage):
    triage.check(CNN, "onnxruntime", inputs={{"image": IMAGES}}, name="two images")
"""


def test_baselines_are_saved_side_by_side_and_a_change_fails_in_words(tmp_path):
    for name, file in (("digits_cnn.onnx", "net.onnx"), ("digits.npz", "digits.npz")):
        (tmp_path / file).write_bytes((EXAMPLES / name).read_bytes())

    def asked(*words):
        (tmp_path / "test_models.py").write_text(BASELINES)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "test_models.py", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = asked("-n", "2", "--triage-save=release")
    assert "3 passed" in done.stdout, done.stdout
    kept = json.loads((tmp_path / ".triage-baseline-release" / "net.onnx.json").read_text())
    assert list(kept["targets"]) == ["float64", "onnxruntime"]  # two writers, one file
    assert (tmp_path / ".triage-baseline-release" / "two images.json").exists()

    assert "3 passed" in asked("--triage-compare=release").stdout
    (tmp_path / "net.onnx").write_bytes((EXAMPLES / "digits_cnn_broken.onnx").read_bytes())
    failed = asked("--triage-compare=release", "-k", "kept and onnxruntime").stdout
    assert "net.onnx on onnxruntime: model: Conv '/block2/conv1/Conv' changed" in failed
    assert "output: 'logits' is 83 % off" in failed
    assert "report: " in failed
    assert "Triage.check" not in failed
    assert "1 passed" in asked("--triage-compare=release", "--triage-fail=version", "-k", "kept and onnxruntime").stdout
    assert "no baseline" in asked("--triage-compare=other", "-k", "kept and float64").stdout
    assert "is not a name of baselines" in asked("--triage-compare", "test_models.py").stderr
