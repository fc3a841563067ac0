"""Polygraphy's logging options: taken wherever Polygraphy takes them, and telling what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tensortriage.cli.logs.levels import LEVELS, levels_of, moved
from tensortriage.cli.logs.options import before_the_command

MODEL = Path(__file__).resolve().parents[4] / "examples/digits_cnn.onnx"


def triage(*words, cwd=None):
    command = [sys.executable, "-c", "from tensortriage.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=600)


RUN = ("run", MODEL, "--onnxrt", "--onnxrt")
BUILT, OUTPUT = "[I] onnxruntime: built in", "[V] onnxruntime: output logits float32 [1, 10]"


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("words", "heard", "not_heard"),
    [
        ((*RUN,), (), (BUILT, OUTPUT)),
        ((*RUN, "-v"), (BUILT, "[I] triage", "[I] ended with exit code 0"), (OUTPUT,)),
        (("-v", *RUN), (BUILT,), (OUTPUT,)),
        ((*RUN, "-vv"), (BUILT, OUTPUT), ()),
        (("-v", *RUN, "--verbose"), (BUILT, OUTPUT), ()),
        ((*RUN, "-vv", "-q"), (BUILT,), (OUTPUT,)),
        ((*RUN, "--verbosity", "runs/runner.py:VERBOSE", "--seed", "3"), (BUILT, OUTPUT), ("[I] read",)),
        ((*RUN, "--verbosity", "INFO", "runs:ERROR", "--seed", "3"), ("[I] read",), (BUILT,)),
        (("--verbosity", "verbose", *RUN), (BUILT, OUTPUT), ()),
    ],
)
def test_levels(words, heard, not_heard):
    done = triage(*words)
    assert done.returncode == 0
    assert "passed" in done.stdout
    for text in heard:
        assert text in done.stderr
    for text in not_heard:
        assert text not in done.stderr


@pytest.mark.lengthy
def test_the_format_of_lines():
    done = triage(*RUN, "-v", "--log-format", "timestamp", "line-info", "no-colors", "--seed", "1")
    assert re.search(
        r"^\[I\]\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\]\[runner\.py:\d+\] onnxruntime: built", done.stderr, re.M
    )


def test_a_log_file_holds_lines_and_results_whatever_the_terminal_shows(tmp_path):
    file = tmp_path / "logs" / "x.log"
    done = triage(*RUN, "--log-file", file)
    assert done.stderr == ""
    text = file.read_text()
    assert BUILT in text
    assert "passed" in text
    assert "exit code 0" in text
    assert triage("run", "missing.onnx", "--onnxrt", "--log-file", file).returncode == 2
    assert "error[model-missing]" in file.read_text()
    assert BUILT not in file.read_text()


def test_a_log_file_is_no_input(tmp_path):
    model = tmp_path / "m.onnx"
    model.write_bytes(MODEL.read_bytes())
    assert "output-is-input" in triage("run", model, "--onnxrt", "--log-file", model).stderr
    assert model.read_bytes() == MODEL.read_bytes()


def test_silence_leaves_errors_and_documents():
    done = triage(*RUN, "--silent")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "model-missing" in triage("run", "missing.onnx", "--onnxrt", "--silent").stderr
    assert triage("inspect", "model", MODEL, "--json", "--silent").stdout.startswith("{")


def test_the_words_of_a_check_are_its_own(tmp_path):
    done = triage("debug", "-v", "repeat", "--until", "1", "--check", "echo", "-v", "-q", "--silent", cwd=tmp_path)
    assert done.returncode == 0
    assert "--check echo -v -q --silent" in done.stderr
    assert "check 0: " in done.stderr


@pytest.mark.lengthy
@pytest.mark.parametrize("group", [("debug", "reduce"), ("surgeon", "prune"), ("data", "merge"), ("check", "lint")])
def test_groups_and_commands_take_them(group):
    front, back = group[:1], group[1:]
    for words in ((*group, "-vv"), (*front, "-q", *back), ("--verbosity", "INFO", *group)):
        assert triage(*words, "--help").returncode == 0


def test_lists_in_front_of_the_command_word_end_before_it():
    words = ["--log-file", "INFO", "--verbosity", "INFO", "runs:ERROR", "-v", "run", "--verbosity", "INFO"]
    assert before_the_command(words) == [
        "--log-file", "INFO", "--verbosity", "INFO", "--verbosity", "runs:ERROR", "-v", "run", "--verbosity", "INFO",
    ]  # fmt: skip


def test_steps_between_levels():
    assert moved(LEVELS["WARNING"], -1) == LEVELS["INFO"]
    assert moved(LEVELS["WARNING"], 5) == LEVELS["CRITICAL"]
    assert moved(LEVELS["WARNING"], -9) == LEVELS["ULTRA_VERBOSE"]
    assert levels_of(("INFO", "runs/runner.py:error")) == (LEVELS["INFO"], {"runs.runner": LEVELS["ERROR"]})


def test_a_level_that_does_not_exist():
    done = triage(*RUN, "--verbosity=LOUD")
    assert done.returncode == 2
    assert "names no level" in done.stderr
