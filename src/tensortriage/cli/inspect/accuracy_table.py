"""Saved accuracy results as text: one line per output, a summary per pair of runners."""

import dataclasses
from collections.abc import Mapping
from typing import TextIO

from rich.table import Table
from rich.text import Text

from tensortriage.report.terminal.stream import StreamConsole
from tensortriage.values.printable import printable
from tensortriage.values.serial import to_json
from tensortriage.values.text import magnitude, shorten, times
from tensortriage.workflows.comparison.rejudge import Rejudged, RejudgedRow

MOST_ROWS = 60


def show(rejudged: Rejudged, stream: TextIO) -> None:
    """Print every judged output, the worst first when there are many, then how many passed."""
    console = StreamConsole(stream)
    rows = list(rejudged.rows)
    if len(rows) > MOST_ROWS:
        rows.sort(key=lambda row: row.judgement.within)
    table = Table(box=None, pad_edge=False, show_edge=False)
    for title in ("compare", "output", "iteration", "saved", "limit", "error/limit", ""):
        table.add_column(title, justify="right" if title == "error/limit" else "left", no_wrap=True)
    for row in rows[:MOST_ROWS]:
        table.add_row(*_cells(row))
    console.print(table)
    if len(rows) > MOST_ROWS:
        console.print(f"... and {len(rows) - MOST_ROWS} more")
    for line in summaries(rejudged):
        console.print(Text(line), soft_wrap=True)
    if rejudged.ignored:
        console.print(f"not judged, no limit given: {', '.join(rejudged.ignored)}", soft_wrap=True)
    console.print(
        Text("PASSED" if rejudged.passed else "FAILED", style="bold green" if rejudged.passed else "bold red")
    )


def to_document(rejudged: Rejudged) -> str:
    """Return everything as one JSON document (``tensortriage.accuracy/1``)."""
    rows = [
        {
            **{field.name: getattr(row, field.name) for field in dataclasses.fields(row) if field.name != "judgement"},
            **{field.name: getattr(row.judgement, field.name) for field in dataclasses.fields(row.judgement)},
        }
        for row in rejudged.rows
    ]
    return to_json({
        "format": "tensortriage.accuracy/1", "passed": rejudged.passed, "rows": rows, "ignored": rejudged.ignored,
    })  # fmt: skip


def summaries(rejudged: Rejudged) -> list[str]:
    """Return one line per comparison function and pair of runners, counting iterations, or outputs for averages."""
    groups: dict[tuple[str, tuple[str, str]], list[RejudgedRow]] = {}
    for row in rejudged.rows:
        groups.setdefault((row.compare, row.runners), []).append(row)
    lines = []
    for (compare, (first, second)), rows in groups.items():
        is_average = rows[0].iteration is None
        verdicts: dict[object, bool] = {}
        for row in rows:
            key = row.output if is_average else row.iteration
            verdicts[key] = verdicts.get(key, True) and row.judgement.within
        noun = "outputs (means over all iterations)" if is_average else "iterations"
        who = f"{printable(first)} vs. {printable(second)}"
        lines.append(f"{compare}: {who}: {sum(verdicts.values())} of {len(verdicts)} {noun} passed")
    return lines


def _cells(row: RejudgedRow) -> list[Text]:
    verdict = Text("ok", style="green") if row.judgement.within else Text("FAIL", style="bold red")
    return [
        Text(row.compare),
        Text(shorten(printable(row.output), 40)),
        Text("mean" if row.iteration is None else str(row.iteration)),
        Text(_numbers(row.metrics)),
        Text(row.judgement.limit),
        Text(times(row.judgement.ratio)),
        verdict,
    ]


def _numbers(metrics: Mapping[str, float | None]) -> str:
    """Return the one number that was saved, or the largest absolute and relative error of many."""
    if "max_absdiff" in metrics:
        return f"max abs {magnitude(metrics['max_absdiff'])}, rel {magnitude(metrics['max_reldiff'])}"
    return ", ".join(magnitude(value) for value in metrics.values()) or "-"
