"""``run --gen-script``: the script that is written does what the command line does."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tensortriage import api
from tensortriage.cli.run.script import PUBLIC
from tensortriage.workflows.comparison.saved_results import load_saved

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
MODEL = str(EXAMPLES / "digits_cnn.onnx")


def python(*words, cwd):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, cwd=cwd, timeout=600)


def triage(*words, cwd):
    return python("-c", "from tensortriage.cli import main; main()", *words, cwd=cwd)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--onnxrt", "--target", "emulate:precision=bf16", "--atol", "1e-6", "--rtol", "1e-6"], 1),
        (["--onnxrt", "--onnxrt", "--onnx-outputs", "mark", "all", "--check-error-stat", "max", "--seed", "3"], 0),
        (["--onnxrt", "--pluginref", "--compare", "cosine_similarity", "--inputs", str(EXAMPLES / "digits.npz")], 0),
    ],
)
def test_a_script_ends_as_the_command_does(options, code, tmp_path):
    words = ["run", MODEL, *options]
    assert triage(*words, cwd=tmp_path).returncode == code
    done = triage(*words, "--gen-script", "same.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    done = python("same.py", cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines()[-1] == ("failed" if code else "passed")


def test_a_script_reads_and_writes_the_same_files(tmp_path):
    assert triage("run", MODEL, "--onnxrt", "--seed", "1", "--save-inputs", "in.json", "--save-outputs", "out.json",
                  cwd=tmp_path).returncode == 0  # fmt: skip
    words = ["run", MODEL, "--onnxrt", "--load-inputs", "in.json", "--load-outputs", "out.json"]
    text = triage(*words, "--save-outputs", "again.json", "--gen", "-", cwd=tmp_path).stdout
    (tmp_path / "same.py").write_text(text)
    assert python("same.py", cwd=tmp_path).returncode == 0
    first, again = (next(load_saved(tmp_path / name)) for name in ("out.json", "again.json"))
    np.testing.assert_array_equal(first.results[0]["logits"], again.results[0]["logits"])


def test_public_names_come_from_the_public_module():
    assert set(PUBLIC) <= set(api.__all__)


@pytest.mark.lengthy
def test_a_script_scores_by_the_metric_and_keeps_the_worst_samples(tmp_path):
    words = ["run", MODEL, "--onnxrt", "--target", "emulate:precision=fp8e5m2", "--save-worst", "worst.npz", "--inputs",
             str(EXAMPLES / "digits_samples.npz"), "--gen-script", "same.py"]  # fmt: skip
    refused = triage(*words, cwd=tmp_path)
    assert refused.returncode == 2
    assert "error[option-needs-another]" in refused.stderr
    assert triage(*words, "--metric-script", str(EXAMPLES / "accuracy.py"), cwd=tmp_path).returncode == 0
    done = python("same.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "worst.npz") as worst:
        assert list(worst) == ["0/image", "1/image", "2/image"]  # three of fourteen, as the command line says
