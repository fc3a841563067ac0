import io
import os
import sys

import pytest

from tensortriage.report.terminal.lines import PLAIN_WIDTH, plain, show, width

LINE = [("a", "bold red"), ("b", ""), ("c", "dim"), ("d", "yellow")]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("err", [False, True])
def test_a_terminal_gets_colours_and_a_pipe_none(err, monkeypatch):
    for stream, expected in (
        (Terminal(), "\x1b[31m\x1b[1ma\x1b[0mb\x1b[2mc\x1b[0m\x1b[33md\x1b[0m\n"),
        (io.StringIO(), "abcd\n"),
    ):
        monkeypatch.setattr(sys, "stderr" if err else "stdout", stream)
        show([LINE], err=err)
        assert stream.getvalue() == expected


@pytest.mark.parametrize("line", ["a\x1b[2J", [("a", "red"), ("\x1b[2J", "")], [("a\x1b[2J", "bold")]])
def test_text_of_a_line_cannot_act(line, capsys):
    show([line])
    assert plain(line) == "a\\x1b[2J" == capsys.readouterr().out.rstrip()


def test_a_table_is_as_wide_as_the_window_and_wide_in_a_pipe(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert width() == PLAIN_WIDTH
    monkeypatch.setitem(os.environ, "COLUMNS", "77")
    assert width() == 77
