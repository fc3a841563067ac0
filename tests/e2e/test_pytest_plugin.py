"""The plugin in a pytest of its own: what a failing test prints, also in parallel, and that collecting stays light."""

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
