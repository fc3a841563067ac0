"""``triage polygraphy``: the lines, names and exit codes that scripts of Polygraphy's users depend on.

The expected lines are those that Polygraphy 0.53.6 printed for the same command lines.
"""

import json
import re
import sys

import numpy as np
import onnx
import pytest

from running_cli import EXAMPLES, triage
from tensortriage.workflows.comparison.saved_results import load_saved

MODEL = EXAMPLES / "digits_cnn.onnx"


def polygraphy(*words, cwd):
    return triage("polygraphy", *words, cwd=cwd)


def test_a_comparison_that_passes(tmp_path):
    done = polygraphy("run", MODEL, "--onnxrt", "--onnxrt", "--save-outputs", "out.json", cwd=tmp_path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"\[I\] RUNNING \| Command: polygraphy run .*", lines[0])
    name = r"onnxrt-runner-N%d-\d\d/\d\d/\d\d-\d\d:\d\d:\d\d"
    pair = f"{name % 0} vs\\. {name % 1}"
    assert re.search(rf"^\[I\] Accuracy Comparison \| {pair}$", done.stdout, re.MULTILINE)
    assert "[I]         PASSED | Output: 'logits' | Difference is within tolerance" in done.stdout
    assert "[I]     PASSED | All outputs matched | Outputs: ['logits']" in lines
    summary = rf"^\[I\] Accuracy Summary \| {pair} \| Passed: 1/1 iterations \| Pass Rate: 100\.00%$"
    assert re.search(summary, done.stdout, re.MULTILINE)
    assert re.fullmatch(r"\[I\] PASSED \| Runtime: \d+\.\d{3}s \| Command: polygraphy run .*", lines[-1])
    runners = [runner for runner, _ in json.loads((tmp_path / "out.json").read_text())["lst"]]
    assert [re.fullmatch(name % number, runner) is not None for number, runner in enumerate(runners)] == [True, True]


def test_a_comparison_that_fails(tmp_path):
    done = polygraphy("run", MODEL, "--onnxrt", "--fp-to-fp16", "--save-outputs", "half.json", cwd=tmp_path)
    assert done.returncode == 0
    done = polygraphy("run", MODEL, "--onnxrt", "--load-outputs", "half.json", cwd=tmp_path)
    assert done.returncode == 1
    assert "[E]         FAILED | Output: 'logits' | Difference exceeds tolerance" in done.stdout
    assert "[E]     FAILED | Mismatched outputs: ['logits']" in done.stdout.splitlines()
    assert "| Passed: 0/1 iterations | Pass Rate: 0.00%" in done.stdout
    assert re.match(r"\[E\] FAILED \| Runtime: ", done.stdout.splitlines()[-1])


def test_made_up_inputs_are_polygraphys(tmp_path):
    assert polygraphy("run", MODEL, "--onnxrt", "--save-inputs", "in.json", cwd=tmp_path).returncode == 0
    found = next(load_saved(tmp_path / "in.json")).results[0]["image"]
    expected = np.random.RandomState(1).random_sample((1, 1, 8, 8)).astype(np.float32)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["run", "missing.onnx", "--onnxrt"], 1),
        (["run", MODEL, "--no-such-option"], 1),
        (["run", MODEL, "--tf"], 1),
        (["run", MODEL, "--onnxrt", "--load-outputs", "missing.json"], 1),
        (["surgeon", "extract", MODEL], 2),
        (["check", "lint", MODEL], 0),
        (["inspect", "sparsity", MODEL], 0),
        (["debug", "repeat", "--until", "2", "--check", "false"], 0),
        (["debug", "repeat", "--until", "bad", "--check", "false"], 0),
        (["-v"], 0),
        (["--version"], 0),
    ],
)
def test_exit_codes(words, code, tmp_path):
    done = polygraphy(*words, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr


def test_validation_and_levels(tmp_path):
    done = polygraphy("run", MODEL, "--onnxrt", "--validate", "-q", cwd=tmp_path)
    assert "PASSED | Output Validation" in done.stdout
    assert "Accuracy" not in done.stdout
    assert polygraphy("run", MODEL, "--onnxrt", "--silent", cwd=tmp_path).stdout == ""


def test_errors_are_marked(tmp_path):
    done = polygraphy("run", "missing.onnx", "--onnxrt", cwd=tmp_path)
    assert done.stderr.startswith("[!] ")


def test_nothing_is_left_behind_but_polygraphys_own_files(tmp_path):
    check = tmp_path / "check.py"
    check.write_text(
        "import onnx; exit(any(n.op_type == 'Gemm' for n in onnx.load('polygraphy_debug.onnx').graph.node))"
    )
    words = ["debug", "reduce", MODEL, "-o", "small.onnx", "--mode", "bisect", "--check", sys.executable, check]
    done = polygraphy(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [node.op_type for node in onnx.load(tmp_path / "small.onnx").graph.node] == ["Gemm"]
    assert {path.name for path in tmp_path.iterdir()} == {"small.onnx", "polygraphy_debug_replay.json", "check.py"}
