"""Saved accuracy results as text: one line per output, a summary per pair of runners."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from tensortriage.report.tables import JUDGED, Column, Looks, Table
from tensortriage.report.terminal.lines import Line, width
from tensortriage.report.terminal.table_text import more_line, table_lines
from tensortriage.values.grouping import grouped
from tensortriage.values.serial import to_json
from tensortriage.values.text import magnitude, times
from tensortriage.workflows.comparison.rejudge import Rejudged, RejudgedRow

MOST_ROWS = 60


def accuracy_lines(rejudged: Rejudged) -> Iterator[Line]:
    """Yield every judged output, the worst first when there are many, then how many passed."""
    columns: Sequence[Column[RejudgedRow]] = (
        Column("compare", lambda row: row.compare),
        Column("output", lambda row: row.output, Looks.NAME),
        Column("iteration", lambda row: "mean" if row.iteration is None else str(row.iteration)),
        Column("saved", lambda row: _numbers(row.metrics)),
        Column("limit", lambda row: row.judgement.limit),
        Column("error/limit", lambda row: times(row.judgement.ratio), Looks.NUMBER),
        Column("", lambda row: JUDGED[row.judgement.within]),
    )
    rows = list(rejudged.rows)
    if len(rows) > MOST_ROWS:
        rows.sort(key=lambda row: row.judgement.within)
    table = Table.of("Accuracy", "output", columns, rows)
    yield from table_lines(table, width=width(), most=MOST_ROWS, indent="")
    yield from more_line(table, MOST_ROWS, "", indent="")
    yield from summaries(rejudged)
    if rejudged.ignored:
        yield f"not judged, no limit given: {', '.join(rejudged.ignored)}"
    yield [("PASSED", "bold green") if rejudged.passed else ("FAILED", "bold red")]


def accuracy_document(rejudged: Rejudged) -> str:
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
    groups = grouped(((row.compare, row.runners), row) for row in rejudged.rows)
    lines = []
    for (compare, (first, second)), rows in groups.items():
        is_average = rows[0].iteration is None
        verdicts: dict[object, bool] = {}
        for row in rows:
            key = row.output if is_average else row.iteration
            verdicts[key] = verdicts.get(key, True) and row.judgement.within
        noun = "outputs (means over all iterations)" if is_average else "iterations"
        lines.append(f"{compare}: {first} vs. {second}: {sum(verdicts.values())} of {len(verdicts)} {noun} passed")
    return lines


def _numbers(metrics: Mapping[str, float | None]) -> str:
    """Return the one number that was saved, or the largest absolute and relative error of many."""
    if "max_absdiff" in metrics:
        return f"max abs {magnitude(metrics['max_absdiff'])}, rel {magnitude(metrics['max_reldiff'])}"
    return ", ".join(magnitude(value) for value in metrics.values()) or "-"
