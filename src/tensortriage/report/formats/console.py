"""The report in a terminal: the verdict first, the next commands last, at most a screenful between.

Everything from a model file passes through `printable` and enters Rich as plain `Text`, so neither terminal escapes nor
Rich markup in a name can act. Commands are printed unwrapped, to be copied.
"""

import io
import os
from collections.abc import Collection
from typing import TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text

from tensortriage.report.case_tables import MOST_ROWS, culprits, outputs, shapes
from tensortriage.report.document import Report, step_cost
from tensortriage.report.tables import Table
from tensortriage.report.terminal.table_text import TONE_STYLES, more_line, table_lines
from tensortriage.report.verdict_words import BREAKERS
from tensortriage.values.printable import printable
from tensortriage.values.text import abridged, percent, shorten

PLAIN_WIDTH = 100
"""Columns where there is no terminal to ask and ``COLUMNS`` is not set."""

_LONGEST_TEXT = 1000
"""Ten lines."""
_LONGEST_HEADLINE = 200
_INDENT = 2


class _AsciiBuffer(io.StringIO):
    """Makes Rich draw with ASCII."""

    encoding = "ascii"


def render(report: Report) -> str:
    """Return the report as plain text without colour, `PLAIN_WIDTH` columns wide."""
    buffer = io.StringIO()
    _show(report, Console(file=buffer, width=PLAIN_WIDTH, color_system=None, highlight=False, emoji=False))
    return _trimmed(buffer.getvalue())


SECTIONS = ("Culprits", "Path taken", "Outputs", "Shapes")
"""Sections between the verdict and the next commands."""


def show(report: Report, stream: TextIO, *, sections: Collection[str] = SECTIONS) -> None:
    """Print the report: in colour and as wide as the window on a terminal, as plain text elsewhere.

    Characters that the stream's encoding lacks are replaced.

    Args:
        report: The report.
        stream: The terminal or file.
        sections: Names of `SECTIONS` to show; a caller that printed the steps as they came leaves them out.
    """
    terminal = stream.isatty()
    encoding = getattr(stream, "encoding", None) or "utf-8"
    buffer = io.StringIO() if encoding.lower().replace("-", "").startswith("utf8") else _AsciiBuffer()
    width = Console(file=stream).width if terminal or "COLUMNS" in os.environ else PLAIN_WIDTH
    console = Console(
        file=buffer,
        width=max(40, width),
        force_terminal=terminal,
        color_system="auto" if terminal else None,
        highlight=False,
        emoji=False,
    )
    _show(report, console, sections)
    text = buffer.getvalue() if terminal else _trimmed(buffer.getvalue())
    stream.write(text.encode(encoding, errors="replace").decode(encoding))


def _trimmed(text: str) -> str:
    """Drop the blanks that fill tables up to the width; in a pipe they are only noise."""
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def _show(report: Report, console: Console, sections: Collection[str] = SECTIONS) -> None:
    console.print(_verdict_panel(report))
    width = console.width - _INDENT
    for title, body in (
        ("Culprits", _table(culprits(report), width)),
        ("Path taken", _steps(report)),
        ("Outputs", _table(outputs(report), width)),
        ("Shapes", _table(shapes(report), width)),
    ):
        if body is not None and title in sections:
            console.print(Text(title, style="bold"))
            console.print(Padding(body, (0, 0, 1, _INDENT)))
    if report.verdict.breakers:
        console.print(Text("Fusion breakers", style="bold"))
        names = _text(", ".join(report.verdict.breakers[:MOST_ROWS]))
        console.print(Padding(Group(names, Text(BREAKERS, style="dim")), (0, 0, 1, _INDENT)))
    if report.left_open:
        console.print(Text("Left open", style="bold"))
        open_lines = [_text(f"{step.question} {step.answer}") for step in report.left_open]
        console.print(Padding(Group(*open_lines), (0, 0, 1, _INDENT)))
    _next_commands(report, console)


def _text(value: str, style: str = "") -> Text:
    return Text(abridged(printable(value), _LONGEST_TEXT), style=style, overflow="fold")


def _verdict_panel(report: Report) -> Panel:
    style = TONE_STYLES[report.words.tone]
    title = shorten(printable(report.headline), _LONGEST_HEADLINE)
    heading = Text.assemble(
        (f"{report.words.tone.sign} {report.verdict.verdict}", f"bold {style}"), ("  " + title, "bold")
    )
    lines: list[RenderableType] = [heading, _text(report.verdict.summary)]
    if report.case is not None:
        lines.append(Text())
        lines.append(_text(f"model      {report.case.model.path}"))
        lines.append(_text(f"reference  {report.case.reference}"))
        lines.append(_text(f"target     {report.case.target}"))
    if report.verdict.culprits and (origin := report.origin_words(report.verdict.culprits[0])):
        lines.append(_text(f"module     {origin}"))
    if report.verdict.accuracy is not None:
        lines.append(_text(f"accuracy   {report.verdict.accuracy.words}"))
    for number, sentence in enumerate(report.verdict.sufficiency):
        lines.append(_text(f"{'' if number else 'enough?':<11}{sentence}"))
    if report.verdict.remedy is not None:
        lines.append(_text(f"remedy     {report.verdict.remedy.summary}"))
    if report.verdict.fix:
        lines.append(_text(f"fix        {report.verdict.fix}"))
    if report.verdict.repro is not None:
        lines.append(_text(f"repro      {report.repro_words}"))
    facts = (f"confidence {percent(report.confidence)}", f"{report.verdict.inputs} inputs", report.cost_words)
    lines += [Text(), _text(" · ".join(facts), "dim")]
    return Panel(
        Group(*lines),
        title=Text("TensorTriage"),
        title_align="left",
        border_style=style,
        box=box.ROUNDED,
        padding=(0, 1),
    )


def _table(table: Table, width: int) -> RenderableType | None:
    if not table.rows:
        return None
    lines = [*table_lines(table, width=width, most=MOST_ROWS, indent="")]
    parts = [Text.assemble(*line, no_wrap=True, overflow="ellipsis") for line in lines]
    notes = [*table.beneath(MOST_ROWS), *table.notes[:MOST_ROWS]]
    parts += [Text.assemble((f"{label}: " if label else "", "dim"), _text(sentence)) for label, sentence in notes]
    more = more_line(table, MOST_ROWS, " in the html and json formats", indent="")
    return Group(*parts, *(Text.assemble(*line) for line in more))


def _steps(report: Report) -> RenderableType | None:
    if not report.verdict.steps:
        return None
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for justify in ("right", "left", "left", "right"):
        table.add_column(justify=justify, overflow="fold", no_wrap=justify == "right")
    for number, step in enumerate(report.verdict.steps, 1):
        table.add_row(str(number), _text(step.question), _text(step.answer, "bold"), Text(step_cost(step), "dim"))
    return table


def _next_commands(report: Report, console: Console) -> None:
    """Print the next steps in order; commands are not wrapped, so that they can be copied."""
    commands = [printable(command) for command in report.verdict.next]
    if not commands:
        return
    console.print(Text("Next", style="bold"))
    for number, command in enumerate(commands, 1):
        console.print(Text.assemble(f"  {number}. ", (command, "bold cyan" if number == 1 else "")), soft_wrap=True)
