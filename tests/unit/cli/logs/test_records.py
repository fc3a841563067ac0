"""The log of a command: which lines are heard, how they look, and that streams and loggers are left as they were."""

import contextlib
import io
import logging
import re
import sys

import pytest

from tensortriage.cli.logs.levels import LEVELS
from tensortriage.cli.logs.records import PACKAGE, Log, letter

WARNING, INFO, VERBOSE = (LEVELS[name] for name in ("WARNING", "INFO", "VERBOSE"))


class Stream(io.StringIO):
    """A stream that is a terminal where it is told so."""

    is_terminal = False

    def isatty(self):
        return self.is_terminal


class Streams:
    """What a command writes, and its log."""

    def __init__(self, *, terminal=False):
        self._bytes = io.BytesIO()
        self.stdout = io.TextIOWrapper(self._bytes, encoding="utf-8", write_through=True)
        self.stderr = Stream()
        self.stderr.is_terminal = terminal

    @property
    def out(self):
        return self._bytes.getvalue().decode()

    @property
    def err(self):
        return self.stderr.getvalue()


@contextlib.contextmanager
def logged(usual=WARNING, *, document=False, on_stdout=False, terminal=False, **options):
    """Yield the streams of a command and its log, which leaves nothing behind when it is closed."""
    given = {"more": 0, "less": 0, "named": (), "silent": False, "formats": (), "plain": False, "file": None, **options}
    loggers = [logging.getLogger(), logging.getLogger(PACKAGE)]
    before = [(one.level, one.propagate, list(one.handlers)) for one in loggers]
    streams, real = Streams(terminal=terminal), (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = streams.stdout, streams.stderr
    try:
        log = Log(given, usual, document=document, on_stdout=on_stdout)
        try:
            yield streams, log
        finally:
            log.close()
        assert (sys.stdout, sys.stderr) == (streams.stdout, streams.stderr)
        assert [(one.level, one.propagate, list(one.handlers)) for one in loggers] == before
    finally:
        sys.stdout, sys.stderr = real


def say(level, text="text", part="runs.runner"):
    """Log a line as a module of the package does."""
    logging.getLogger(f"{PACKAGE}.{part}").log(level, text)


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({}, WARNING),
        ({"more": 1}, INFO),
        ({"more": 2, "less": 1}, INFO),
        ({"less": 1}, LEVELS["ERROR"]),
        ({"named": ("VERBOSE",)}, VERBOSE),
        ({"named": ("VERBOSE",), "more": 5}, VERBOSE),
        ({"silent": True, "more": 5}, LEVELS["CRITICAL"]),
        ({"on_stdout": True, "more": 1}, LEVELS["FINISH"]),
    ],
)
def test_the_level_of_the_whole(options, level):
    with logged(**options) as (_, log):
        assert log.level == level


def test_a_part_of_the_package_has_a_level_of_its_own():
    with logged(named=("ERROR", "runs:INFO", "runs/runner.py:VERBOSE")) as (streams, _):
        say(VERBOSE, "deep")
        say(VERBOSE, "beside", part="runs.case")
        say(INFO, "near", part="runs.case")
        say(WARNING, "far", part="engines.registry")
    assert streams.err == "[V] deep\n[I] near\n"


@pytest.mark.parametrize(("level", "heard"), [("EXTRA_VERBOSE", False), ("SUPER_VERBOSE", True)])
def test_libraries_are_heard_from_super_verbose_on(level, heard):
    with logged(named=(level,)) as (streams, _):
        logging.getLogger("a.library").warning("theirs")
    assert ("[W] theirs" in streams.err) is heard


@pytest.mark.parametrize(
    ("formats", "shape"),
    [
        ((), r"\[I\] one\n\[I\] two\n"),
        (("timestamp",), r"(\[I\]\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \w+\n){2}"),
        (("line-info",), r"(\[I\]\[test_records.py:\d+\] \w+\n){2}"),
    ],
)
def test_every_line_has_its_head(formats, shape):
    with logged(INFO, formats=formats) as (streams, _):
        say(INFO, "one\ntwo")
    assert re.fullmatch(shape, streams.err)


def test_names_in_models_are_not_trusted_with_a_terminal():
    with logged(INFO) as (streams, _):
        say(INFO, "\x1b[2J")
        say(INFO, "")
    assert "\x1b" not in streams.err
    assert streams.err.endswith("[I] \n")


@pytest.mark.parametrize(
    ("variables", "formats", "terminal", "colored"),
    [
        ({}, (), True, True),
        ({}, (), False, False),
        ({}, ("no-colors",), True, False),
        ({"NO_COLOR": "1"}, (), True, False),
        ({"TERM": "dumb"}, (), True, False),
    ],
)
def test_a_terminal_has_colors_unless_somebody_says_no(monkeypatch, tmp_path, variables, formats, terminal, colored):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with logged(INFO, formats=formats, terminal=terminal, file=tmp_path / "x.log") as (streams, _):
        say(LEVELS["ERROR"])
        say(INFO)
    first, second = streams.err.splitlines()
    assert (first != "[E] text", second) == (colored, "[I] text")
    assert (tmp_path / "x.log").read_text() == "[E] text\n[I] text\n"


def test_a_file_gets_what_is_printed_and_lines_that_the_terminal_does_not(tmp_path):
    place = tmp_path / "deep" / "x.log"
    with logged(file=place) as (streams, log):
        say(INFO, "built")
        say(VERBOSE, "detail")
        sys.stdout.write("\x1b[1mresult\x1b[0m\n")
        log.copy(["told at the end"])
    assert place.read_text() == "[I] built\nresult\ntold at the end\n"
    assert (streams.err, streams.out) == ("", "\x1b[1mresult\x1b[0m\n")


def test_a_file_has_as_much_detail_as_was_asked_for(tmp_path):
    with logged(file=tmp_path / "x.log", named=("VERBOSE",)):
        say(VERBOSE, "detail")
    assert (tmp_path / "x.log").read_text() == "[V] detail\n"


def test_without_a_file_there_is_nothing_to_copy_to():
    with logged() as (streams, log):
        log.copy(["a line"])
    assert streams.out == streams.err == ""


@pytest.mark.parametrize("document", [True, False])
def test_silence_leaves_a_document_and_the_stream_for_errors(document):
    with logged(silent=True, document=document) as (streams, log):
        sys.stdout.write("{}")
        sys.stderr.write("progress")
        say(LEVELS["ERROR"], "hidden")
        assert log.real_stderr is streams.stderr
    assert (streams.out, streams.err) == ("{}" if document else "", "")


def test_polygraphys_lines_go_to_stdout():
    with logged(INFO, on_stdout=True) as (streams, log):
        log.hear(LEVELS["START"], "begun %s", "now")
        assert 0 <= log.seconds < 600
    assert (streams.out, streams.err) == ("[I] begun now\n", "")


LETTERS = {0: "U", 1: "U", 9: "E", 20: "I", 22: "I", 28: "I", 29: "I", 30: "W", 40: "E", 99: "!"}


@pytest.mark.parametrize(("level", "wanted"), LETTERS.items())
def test_the_letter_of_a_level_is_that_of_the_name_below_it(level, wanted):
    assert letter(level) == wanted
