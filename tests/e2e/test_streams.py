"""Streams that are closed, full, or lack letters: the exit code and one block of text say what happened."""

import json
import os
import subprocess
import sys

import pytest

from models import chain
from running_cli import EXAMPLES

pytestmark = pytest.mark.lengthy

MODEL = EXAMPLES / "digits_cnn.onnx"
RUN = f"run {MODEL} --target emulate:precision=fp16 --inputs {EXAMPLES / 'digits.npz'}"
TABLE = f"{RUN} --onnx-outputs mark all"
DATA = f"inspect data {EXAMPLES / 'digits.npz'}"
PREFIX = f'"{sys.executable}" -c "from tensortriage.cli import main; main()"'


def shell(line: str, cwd, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line in which T stands for triage; the exit code is that of the first command of a pipe."""
    line = line.replace("T ", PREFIX + " ", 1)
    return subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", line], cwd=cwd, text=True, capture_output=True, timeout=120, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize("words", [TABLE, f"{RUN} --json", DATA, "debug repeat --until 3 --check true", "run --help"])
def test_a_reader_that_leaves_interrupts(tmp_path, words):
    done = shell(f"T {words} | true", tmp_path)
    assert (done.returncode, "Traceback" in done.stderr, "error[" in done.stderr) == (130, False, False), done.stderr


@pytest.mark.parametrize("words", [RUN, f"{RUN} --json", DATA, "--version"])
def test_closed_streams_swallow_text_and_nothing_else(tmp_path, words):
    done = shell(f"T {words} <&- >&- 2>&-", tmp_path)
    assert done.returncode == 0


def test_nobody_answers_on_a_closed_stdin(tmp_path):
    chain(2).save(tmp_path / "m.onnx")
    done = shell("T debug reduce m.onnx -o r.onnx <&-", tmp_path)
    assert (done.returncode, "error[internal]" in done.stderr) == (130, False)


@pytest.mark.parametrize("words", [RUN, f"{RUN} --json", DATA])
def test_a_full_device_is_an_error(tmp_path, words):
    done = shell(f"T {words} >/dev/full", tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "error[os-error]: No space left on device" in done.stderr


def test_a_locale_without_letters(tmp_path):
    name = "größe <script>.npz"
    (tmp_path / name).write_bytes((EXAMPLES / "digits.npz").read_bytes())
    done = shell(f"T inspect data '{name}'", tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    done = shell(f"T inspect data '{name}' --json", tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert json.loads(done.stdout)["format"] == "tensortriage.data/1"


def test_no_home_and_a_folder_that_is_read_only_do_not_matter_to_what_writes_nothing(tmp_path):
    """The places of artifacts are looked at when there are artifacts."""
    (tmp_path / "polygraphy_artifacts").write_text("in the way")
    done = shell(f"unset HOME; T debug repeat --until 1 --check true; {PREFIX} {RUN}", tmp_path)
    assert done.returncode == 0, done.stderr
