"""What a command says in passing: help by the word, links to nowhere, files that it wrote, a case without an end."""

import subprocess
import sys

import pytest

from running_cli import EXAMPLES, triage

pytestmark = pytest.mark.lengthy
CNN, DIGITS = EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits.npz"


def test_the_word_help_is_the_option(tmp_path):
    for words, first in (
        (("help",), "Usage: triage [OPTIONS]"),
        (("help", "debug", "reduce"), "Usage: triage debug reduce"),
    ):
        line = [sys.executable, "-m", "tensortriage", *words]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.startswith(first)) == (0, True), done.stdout + done.stderr


def test_a_link_that_leads_nowhere_is_told_as_one(tmp_path):
    for name in ("model.onnx", "inputs.npz", "engine.py"):
        (tmp_path / name).symlink_to(f"../elsewhere/{name}")
    for words, name in (
        (("model.onnx", "--target", "onnxruntime"), "model.onnx"),
        ((CNN, "--target", "onnxruntime", "--inputs", "inputs.npz"), "inputs.npz"),
        ((CNN, "--target", "script:engine.py", "--inputs", DIGITS), "engine.py"),
    ):
        done = triage("run", *words, cwd=tmp_path)
        assert done.returncode in (2, 3)
        assert f"{name} is a link to ../elsewhere/{name}, which does not exist" in done.stderr


def test_what_was_written_is_said(tmp_path):
    words = ("run", CNN, "--onnxrt", "--inputs", DIGITS, "--save-outputs", "o.npz", "--save-inputs", "i.npz")
    done = triage(*words, cwd=tmp_path)
    assert done.stdout.endswith("wrote i.npz: inputs of 1 feed\nwrote o.npz: outputs on 1 feed\n")
    assert "wrote o.npz" in triage(*words, "--json", cwd=tmp_path).stderr


def test_a_case_without_an_end_is_told_as_one(tmp_path):
    (tmp_path / "case").mkdir()
    done = triage("report", "case", cwd=tmp_path)
    assert done.returncode == 2
    assert "case holds no verdict: its diagnosis was interrupted" in done.stderr
    assert "it resumes from its results" in done.stderr
