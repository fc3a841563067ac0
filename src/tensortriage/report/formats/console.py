"""The report in a terminal: the verdict first, the command to run next last, at most a screenful between.

Everything from a model file passes through `printable` and enters Rich as plain `Text`, so neither terminal escapes nor
Rich markup in a name can act. Commands are printed unwrapped, to be copied.
"""

import io
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tensortriage.diagnose.state.verdict import Culprit, Step
from tensortriage.report.document import Report
from tensortriage.report.verdict_words import BREAKERS, Tone
from tensortriage.values.printable import printable
from tensortriage.values.text import count, decibel, duration, magnitude, percent, shape, shorten, times

MAX_ROWS = 12
"""Rows of any table; the rest is counted, and is in the other formats."""

MAX_REASONS = 3
"""Distinct reasons given below the table of culprits."""

PLAIN_WIDTH = 100
"""Columns where there is no terminal to ask and ``COLUMNS`` is not set."""

_TONE_STYLE = {Tone.GOOD: "green", Tone.NOTICE: "cyan", Tone.PROBLEM: "red", Tone.UNSURE: "yellow"}
_LONGEST_TEXT = 600
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
"""What comes between the verdict and the next commands."""


def show(report: Report, stream: TextIO, *, sections: Collection[str] = SECTIONS) -> None:
    """Print the report: in colour and as wide as the window on a terminal, as plain text elsewhere.

    Characters that the stream's encoding lacks are replaced.

    Args:
        report: What to show.
        stream: Where to.
        sections: Those of `SECTIONS` to show; a caller that has told the steps as they came leaves them out.
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
    """Drop the blanks with which tables are filled up to the width; in a pipe they are only noise."""
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def _show(report: Report, console: Console, sections: Collection[str] = SECTIONS) -> None:
    console.print(_verdict_panel(report))
    for title, body in (
        ("Culprits", _culprits(report, console.width)),
        ("Path taken", _steps(report)),
        ("Outputs", _outputs(report, console.width)),
        ("Shapes", _shapes(report, console.width)),
    ):
        if body is not None and title in sections:
            console.print(Text(title, style="bold"))
            console.print(Padding(body, (0, 0, 1, _INDENT)))
    if report.verdict.breakers:
        console.print(Text("Fusion breakers", style="bold"))
        names = _text(", ".join(report.verdict.breakers[:MAX_ROWS]))
        console.print(Padding(Group(names, Text(BREAKERS, style="dim")), (0, 0, 1, _INDENT)))
    _next_commands(report, console)


def _text(value: str, style: str = "", width: int = _LONGEST_TEXT) -> Text:
    return Text(shorten(printable(value), width), style=style, overflow="fold")


def _verdict_panel(report: Report) -> Panel:
    style = _TONE_STYLE[report.words.tone]
    heading = Text.assemble(
        (f"{report.words.tone.sign} {report.verdict.verdict}", f"bold {style}"), ("  " + report.words.title, "bold")
    )
    lines: list[RenderableType] = [heading, _text(report.verdict.summary)]
    facts = [f"confidence {percent(report.confidence)}", f"{printable(report.verdict.inputs)} inputs"]
    facts.append(report.cost_words)
    if report.case is not None:
        lines.append(Text())
        lines.append(_text(f"model      {report.case.model.path}"))
        lines.append(_text(f"reference  {report.case.reference}"))
        lines.append(_text(f"target     {report.case.target}"))
    if report.verdict.culprits and (origin := report.origin_words(report.verdict.culprits[0])):
        lines.append(_text(f"module     {origin}"))
    if report.verdict.remedy is not None:
        lines.append(_text(f"remedy     {report.verdict.remedy.summary}"))
    if report.verdict.repro is not None:
        lines.append(_text(f"repro      {report.repro_words}"))
    return Panel(
        Group(*lines),
        title=Text("TensorTriage"),
        title_align="left",
        subtitle=Text(" · ".join(facts)),
        subtitle_align="left",
        border_style=style,
        box=box.ROUNDED,
        padding=(0, 1),
    )


def _table(titles: Sequence[str], rows: Sequence[Sequence[Text]], width: int, *, elastic: Mapping[int, int]) -> Table:
    """Return an unruled table that is exactly as wide as it may be.

    Args:
        titles: Column titles; those that start with ``>`` are right-justified.
        rows: Cells.
        width: Columns of the terminal.
        elastic: Index of each column that gives way, and its weight; the others are as wide as their content. Cells
            too long for an elastic column are cut in the middle.

    Columns of numbers in which nothing was measured are left out.
    """
    kept = [
        index
        for index, title in enumerate(titles)
        if not title.startswith(">") or any(row[index].plain != "-" for row in rows)
    ]
    titles, rows = [titles[index] for index in kept], [[row[index] for index in kept] for row in rows]
    widths = [
        max(cell_len(title.lstrip(">")), *(cell_len(row[index].plain) for row in rows))
        for index, title in enumerate(titles)
    ]
    room = width - _INDENT - 2 * len(titles) - sum(w for index, w in enumerate(widths) if index not in elastic)
    wanted = sum(widths[index] for index in elastic)
    for index, weight in elastic.items():
        if wanted > room:
            widths[index] = max(8, min(widths[index], room * weight // sum(elastic.values())))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title, column_width in zip(titles, widths, strict=True):
        justify: JustifyMethod = "right" if title.startswith(">") else "left"
        table.add_column(title.lstrip(">"), justify=justify, no_wrap=True, width=column_width, overflow="ellipsis")
    for row in rows:
        table.add_row(*(_fitted(cell, column_width) for cell, column_width in zip(row, widths, strict=True)))
    return table


def _fitted(cell: Text, width: int) -> Text:
    return cell if cell_len(cell.plain) <= width else Text(shorten(cell.plain, width), style=cell.style)


def _culprits(report: Report, width: int) -> RenderableType | None:
    culprits = report.verdict.culprits
    if not culprits:
        return None
    rows = [
        [
            Text(str(number)),
            _text(culprit.op_type, "bold", 18),
            _text(culprit.node),
            Text(magnitude(culprit.local_error)),
            Text(times(culprit.floor_ratio)),
            Text(magnitude(culprit.influence)),
            Text(percent(report.explained_share(culprit))),
        ]
        for number, culprit in enumerate(culprits[:MAX_ROWS], 1)
    ]
    titles = (">", "op", "node", ">local error", ">x floor", ">influence", ">explains")
    parts: list[RenderableType] = [
        _table(titles, rows, width, elastic={2: 1}),
        *_origins(report),
        *_reasons(culprits[:MAX_ROWS]),
    ]
    if len(culprits) > MAX_ROWS:
        parts.append(_more(len(culprits) - MAX_ROWS, "culprit"))
    return Group(*parts)


def _origins(report: Report) -> list[Text]:
    """Return where each culprit comes from, as far as the model says."""
    told = [(number, report.origin_words(c)) for number, c in enumerate(report.verdict.culprits[:MAX_ROWS], 1)]
    return [Text.assemble((f"{number}, from: ", "dim"), _text(words)) for number, words in told if words]


def _reasons(culprits: tuple[Culprit, ...]) -> list[Text]:
    """Return the first distinct reasons, each with the numbers of its culprits."""
    numbers: dict[str, list[str]] = {}
    for number, culprit in enumerate(culprits, 1):
        if culprit.reason:
            numbers.setdefault(culprit.reason, []).append(str(number))
    told = [
        Text.assemble((f"{', '.join(who)}: ", "dim"), _text(reason))
        for reason, who in list(numbers.items())[:MAX_REASONS]
    ]
    for number, culprit in enumerate(culprits[:MAX_REASONS], 1):
        told += [Text.assemble((f"{number}, error: ", "dim"), _text(sentence)) for sentence in culprit.anatomy[:2]]
    return told


def _more(number: int, noun: str) -> Text:
    return Text(f"... and {count(number, noun)} more in the html and json formats", style="dim")


def _steps(report: Report) -> RenderableType | None:
    if not report.verdict.steps:
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for justify in ("right", "left", "left", "right"):
        table.add_column(justify=justify, overflow="fold", no_wrap=justify == "right")
    for number, step in enumerate(report.verdict.steps, 1):
        table.add_row(str(number), _text(step.question), _text(step.answer, "bold"), Text(_step_cost(step), "dim"))
    return table


def _step_cost(step: Step) -> str:
    checks = f", {count(step.checks, 'check')}" if step.checks else ""
    return duration(step.seconds) + checks


def _outputs(report: Report, width: int) -> RenderableType | None:
    outputs = report.worst_outputs()
    if not outputs:
        return None
    rows = [
        [
            _judgement(report.judgement(row)),
            _text(row.name),
            _text(f"{row.dtype} {shape(row.shape)}", "dim"),
            Text(decibel(row.sqnr_db)),
            Text(magnitude(row.relative_rms_error)),
            Text(magnitude(row.floor)),
            Text(magnitude(row.predicted if row.predicted != row.floor else None)),
            Text(magnitude(row.max_abs_error)),
            Text(str(row.nonfinite_target or "-")),
        ]
        for row in outputs[:MAX_ROWS]
    ]
    titles = ("", "output", "type", ">SQNR dB", ">rel. RMS", ">floor", ">predicted", ">max abs", ">NaN/Inf")
    parts: list[RenderableType] = [_table(titles, rows, width, elastic={1: 3, 2: 2})]
    if len(outputs) > MAX_ROWS:
        parts.append(_more(len(outputs) - MAX_ROWS, "output"))
    parts += [_text(sentence) for sentence in report.told_outputs[:MAX_ROWS]]
    parts += [Text.assemble(("error: ", "dim"), _text(sentence)) for sentence in report.verdict.anatomy]
    return Group(*parts)


def _shapes(report: Report, width: int) -> RenderableType | None:
    rows = report.verdict.shapes
    if not rows:
        return None
    cells = [
        [
            _text(row.outcome, "bold red" if row.fails else "green"),
            _text(row.shape),
            _text(row.output),
            Text(magnitude(row.error)),
            Text(times(row.floor_ratio)),
            _text(row.message),
        ]
        for row in rows
    ]
    return _table(("", "shape", "output", ">rel. RMS", ">x floor", "why"), cells, width, elastic={2: 1, 5: 2})


def _judgement(word: str) -> Text:
    """Return how an output stands, loud when it is outside."""
    style = {"within": "green", "as predicted": "cyan"}.get(word, "bold red")
    return Text(word.upper() if word == "outside" else word, style=style)


def _next_commands(report: Report, console: Console) -> None:
    """Print the commands, the most useful one as the very last line."""
    if not report.verdict.next:
        return
    first, *others = [printable(command) for command in report.verdict.next]
    if others:
        console.print(Text("Also", style="bold"))
        for command in others:
            console.print(Text("  " + command), soft_wrap=True)
    console.print(Text("Next", style="bold"))
    console.print(Text("  " + first, style="bold cyan"), soft_wrap=True)
