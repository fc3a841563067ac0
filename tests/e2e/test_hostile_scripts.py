"""Scripts that end their process: an error with a slug and a document, never an exit of 0 with nothing said."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lengthy

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODEL, FEED = EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits.npz"
RUN = ["run", MODEL, "--target", "onnxruntime"]
COMMANDS = {
    "--data-loader-script": ("load_data", RUN),
    "--metric-script": ("metric", [*RUN, "--inputs", FEED]),
    "--postprocess-func-script": ("postprocess_outputs", [*RUN, "--inputs", FEED]),
    "--compare-func-script": ("compare_outputs", [*RUN, "--inputs", FEED]),
    "--metric": (
        "metric",
        ["debug", "precision", MODEL, "--target", "emulate:precision=fp16", "--inputs", FEED, "-o", "typed.onnx"],
    ),
}


@pytest.mark.parametrize("option", COMMANDS)
def test_a_script_that_exits_is_told(option, tmp_path):
    name, words = COMMANDS[option]
    script = tmp_path / "user.py"
    script.write_text(f"import os\ndef {name}(*given):\n    print('spoken', flush=True)\n    os._exit(0)\n")
    command = [sys.executable, "-c", "from tensortriage.cli import main; main()", *map(str, words), option, str(script)]
    command += ["--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    told = json.loads(done.stdout)
    assert (told["slug"], told["exit_code"]) == ("script-crashed", 2)
    assert "exit code 0" in told["message"]
    assert "spoken" in told["message"]
    assert "error[script-crashed]" in done.stderr


def test_a_metric_that_is_nan_does_not_pass(tmp_path):
    script = tmp_path / "user.py"
    script.write_text("def metric(outputs, feed):\n    return float('nan')\n")
    command = [sys.executable, "-c", "from tensortriage.cli import main; main()", *map(str, RUN)]
    command += ["--inputs", str(FEED), "--metric-script", str(script), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["passed"] is False
