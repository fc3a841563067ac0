"""The log of a command: which lines are heard, how they look, and that streams and loggers are left as they were."""

import contextlib
import io
import logging
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tensortriage.cli import cli
from tensortriage.cli.logs import FINISHED, LEVELS, PACKAGE, Log

MODEL = Path(__file__).resolve().parents[3] / "examples/digits_cnn.onnx"
RUN = ("run", MODEL, "--onnxrt", "--onnxrt")
BUILT, OUTPUT = "[I] onnxruntime: built in", "[D] onnxruntime: output logits float32 [1, 10]"
WARNING, INFO, DEBUG = (LEVELS[name] for name in ("warning", "info", "debug"))


def triage(*words, cwd=None):
    command = [sys.executable, "-c", "from tensortriage.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=600)


@contextlib.contextmanager
def logged(usual=WARNING, *, on_stdout=False, **options):
    """Yield what a command writes to stderr and its log, which leaves nothing behind when it is closed."""
    given = {"more": 0, "less": 0, "level": None, "file": None, **options}
    logger = logging.getLogger(PACKAGE)
    before = logger.level, logger.propagate, list(logger.handlers)
    real, stream = (sys.stdout, sys.stderr), io.StringIO()
    sys.stdout, sys.stderr = (stream, io.StringIO()) if on_stdout else (io.StringIO(), stream)
    try:
        log = Log(given, usual, on_stdout=on_stdout)
        try:
            yield stream, log
        finally:
            log.close()
        assert (logger.level, logger.propagate, list(logger.handlers)) == before
    finally:
        sys.stdout, sys.stderr = real


def say(level, text="text"):
    """Log a line as a module of the package does."""
    logging.getLogger(f"{PACKAGE}.runs.observation.runner").log(level, text)


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({}, WARNING),
        ({"more": 1}, INFO),
        ({"more": 9}, DEBUG),
        ({"more": 2, "less": 1}, INFO),
        ({"less": 1}, LEVELS["error"]),
        ({"less": 9}, LEVELS["critical"]),
        ({"level": "debug", "less": 2}, DEBUG),
    ],
)
def test_the_level(options, level):
    with logged(**options) as (_, log):
        assert log.level == level


def test_lines_begin_with_their_level_and_hold_nothing_that_moves_a_cursor():
    with logged(INFO) as (stream, log):
        say(DEBUG, "deep")
        say(INFO, "one\ntwo")
        say(WARNING, "\x1b[2J")
        log.hear(INFO, "begun %s", "now")
        assert 0 <= log.seconds < 600
    assert stream.getvalue() == "[I] one\n[I] two\n[W] \\x1b[2J\n[I] begun now\n"


@pytest.mark.parametrize(("less", "heard"), [(0, "[I] a\n[I] b\n[E] c\n"), (1, "[I] b\n[E] c\n"), (2, "[E] c\n")])
def test_what_ends_something_is_left_by_one_q_where_lines_are_the_answer(less, heard):
    with logged(INFO, on_stdout=True, less=less) as (stream, _):
        for level, text in ((INFO, "a"), (FINISHED, "b"), (LEVELS["error"], "c")):
            say(level, text)
    assert stream.getvalue() == heard


def test_a_file_has_every_step_whatever_the_terminal_shows(tmp_path):
    place = tmp_path / "deep" / "x.log"
    with logged(file=place) as (stream, log):
        say(INFO, "built")
        say(DEBUG, "detail")
        log.copy(["told at the end"])
    assert place.read_text() == "[I] built\ntold at the end\n"
    assert stream.getvalue() == ""
    with logged(file=place, level="debug"):
        say(DEBUG, "detail")
    assert place.read_text() == "[D] detail\n"


def test_without_a_file_there_is_nothing_to_copy_to():
    with logged() as (stream, log):
        log.copy(["a line"])
    assert stream.getvalue() == ""


def test_a_command_tells_where_it_is_asked_to(tmp_path):
    done = triage("-v", *RUN, "-v", "--seed", "3")
    assert (done.returncode, "passed" in done.stdout) == (0, True)
    for text in (BUILT, OUTPUT, "[I] triage", "[I] ended with exit code 0"):
        assert text in done.stderr
    file = tmp_path / "x.log"
    done = triage("run", "missing.onnx", "--onnxrt", "--log-file", file)
    assert done.returncode == 2
    assert "error[model-missing]" in done.stderr
    assert "error[model-missing]" in file.read_text()
    assert triage(*RUN, "--log", "warning").stderr == ""


def test_a_log_file_is_no_input(tmp_path):
    model = tmp_path / "m.onnx"
    model.write_bytes(MODEL.read_bytes())
    assert "output-is-input" in triage("run", model, "--onnxrt", "--log-file", model).stderr
    assert model.read_bytes() == MODEL.read_bytes()


def test_the_words_of_a_check_are_its_own(tmp_path):
    done = triage("debug", "-v", "repeat", "--until", "1", "--check", "echo", "-v", "-q", "--log", cwd=tmp_path)
    assert done.returncode == 0
    assert "--check echo -v -q --log" in done.stderr
    assert "check 0: " in done.stderr


@pytest.mark.parametrize("group", [("debug", "reduce"), ("surgeon", "sanitize"), ("data", "merge"), ("check", "lint")])
def test_groups_and_commands_take_them(group):
    front, back = group[:1], group[1:]
    for words in ((*group, "-vv"), (*front, "-q", *back), ("--log", "INFO", *group)):
        assert CliRunner().invoke(cli, [*words, "--help"]).exit_code == 0


@pytest.mark.parametrize("words", [["--verbosity", "INFO", "run"], ["debug", "--silent", "repeat"]])
def test_polygraphys_others_are_refused_in_front_of_a_command_too(words):
    with pytest.raises(Exception, match="is not offered") as raised:
        cli.main(words, standalone_mode=False)
    assert raised.value.slug == "option-not-offered"


def test_a_level_that_does_not_exist():
    with pytest.raises(click.BadParameter, match="loud"):
        cli.main([*map(str, RUN), "--log=loud"], standalone_mode=False)
