import dataclasses
import io
import re

import pytest
from rich.cells import cell_len

from tensortriage.diagnose.state.layer_rows import OutputRow, Outputs
from tensortriage.diagnose.state.verdict import Culprit, Step, Verdict
from tensortriage.report.case_tables import MOST_ROWS
from tensortriage.report.document import Report
from tensortriage.report.formats import console
from tensortriage.values.printable import printable
from unit.report.samples import healthy_match, hostile, local_fault, range_overflow

LONG = "/model/" + "x" * 186 + "/MatMul"
REPORTS = [healthy_match(), range_overflow(), local_fault(), hostile()]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Latin(io.StringIO):
    """A pipe whose encoding knows neither box lines nor ellipses."""

    encoding = "latin-1"


def long_names() -> Report:
    base = range_overflow()
    return dataclasses.replace(
        base,
        verdict=dataclasses.replace(base.verdict, culprits=(Culprit(LONG, "Pow", LONG, 0.1, 0.2, 3.0, LONG),), next=()),
        outputs=Outputs((OutputRow(LONG, "float32", (1, 2), 1.0, 1.0, 1.0, 1.0, False),)),
    )


@pytest.mark.parametrize("report", REPORTS)
def test_the_verdict_is_first_and_what_to_do_is_last_in_order(report: Report) -> None:
    lines = console.render(report).splitlines()
    assert report.verdict.verdict in lines[1]
    if report.verdict.next:
        commands = [printable(command) for command in report.verdict.next]
        assert lines[-len(commands) - 1 :] == ["Next", *(f"  {n}. {command}" for n, command in enumerate(commands, 1))]


@pytest.mark.parametrize("width", [40, 60, 80, 132, 250])
@pytest.mark.parametrize("report", [long_names(), healthy_match()])
def test_no_line_is_wider_than_the_window(report: Report, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    console.show(report, stream)
    assert max(map(cell_len, stream.getvalue().splitlines())) <= width


def test_a_long_name_keeps_both_ends() -> None:
    text = console.render(long_names())
    assert re.search(r"/model/x+…x*/MatMul", text)


def test_a_pipe_gets_no_escape_and_a_terminal_gets_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    pipe, terminal = io.StringIO(), Terminal()
    console.show(range_overflow(), pipe)
    console.show(range_overflow(), terminal)
    assert "\x1b" not in pipe.getvalue()
    assert "\x1b[" in terminal.getvalue()


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    console.show(range_overflow(), terminal)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", terminal.getvalue())


def test_names_cannot_speak_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    console.show(hostile(), terminal)
    styled = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert "\x1b" not in styled
    assert "\x07" not in styled
    assert "\u202e" not in styled
    assert "\\x1b[2J" in styled
    assert "[bold red]markup[/bold red] :boom:" in styled


def test_a_stream_of_a_small_alphabet_gets_all_lines() -> None:
    stream = Latin()
    console.show(range_overflow(), stream)
    assert stream.getvalue().encode("latin-1").splitlines()[-2].startswith(b"  1. triage debug precision")


def test_tables_stop_at_twelve_rows_and_count_the_rest() -> None:
    text = console.render(local_fault(60, culprits=tuple(range(20))))
    culprits = text.split("Culprits")[1].split("Path taken")[0]
    assert len(re.findall(r"^ +\d+  \w+", culprits, re.MULTILINE)) == MOST_ROWS
    assert "... and 8 culprits more" in culprits


def test_columns_that_were_not_measured_are_left_out() -> None:
    bare = Report(Verdict("local-fault", 1.0, "", (Culprit("n", "Pow", "v", local_error=0.5),)))
    header = console.render(bare).split("Culprits\n")[1].splitlines()[0]
    assert header.split() == ["op", "node", "local", "error"]


def test_a_bare_verdict_is_enough() -> None:
    text = console.render(Report(Verdict("engine-crash", 1.0, "The engine died with signal 11.")))
    assert "signal 11" in text
    assert "Outputs" not in text


def test_the_facts_wrap_in_a_narrow_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    stream = io.StringIO()
    report = range_overflow()
    console.show(report, stream)
    panel = stream.getvalue().split("\u256f")[0]
    words = " ".join(re.sub("[\u2500-\u257f]", " ", panel).split())
    assert f"real inputs \u00b7 {report.cost_words}" in words


def test_what_found_no_answer_is_told() -> None:
    steps = (Step("is it so?", "yes"), Step("and this?", "unknown: it failed"), Step("or that?", "skipped"))
    report = Report(Verdict("inconclusive", 0.5, "", steps=steps))
    assert console.render(report).split("Left open\n")[1].splitlines()[:2] == [
        "  and this? unknown: it failed",
        "  or that? skipped",
    ]
