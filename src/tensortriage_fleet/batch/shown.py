"""A batch as a text: of its case for ``triage report``, and for GitHub at the end of a job."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from tensortriage.sdk import (
    Column,
    Looks,
    Table,
    UsageError,
    issue_text,
    load,
    printable,
    to_json,
)
from tensortriage_fleet.batch.batch import PAGE, RESULT
from tensortriage_fleet.batch.batch_result import BatchResult, CellOutcome, CellResult
from tensortriage_fleet.batch.batch_text import cell_line, closing_lines, counted
from tensortriage_fleet.batch.overview import render_overview
from tensortriage_fleet.findings.finding import Finding

_MOST_LINES = 12
"""Command lines below the summary."""


class ShownBatch:
    """The batch of a case, rendered once more.

    Raises:
        StoreError: When ``batch.json`` is damaged.
    """

    def __init__(self, case: Path) -> None:
        self._case, self._result = case, load(case / RESULT, BatchResult)

    def render(self, format_name: str) -> str:
        """Return the batch in a format.

        Raises:
            UsageError: For one that shows a graph (``report-format-batch``).
        """
        result = self._result
        if format_name == "html":
            return render_overview(result)
        if format_name == "json":
            return to_json(result)
        if format_name == "markdown":
            return summary(result)
        if format_name == "console":
            return "\n".join(self._lines())
        raise UsageError(
            f"'{format_name}' shows tensors on a graph, and this case is a batch",
            slug="report-format-batch",
            cure="use another, or render the case of a cell: CASE/cells/CELL/case",
        )

    def show(self, *, err: bool) -> None:
        """Show it in the terminal."""
        for line in self._lines():
            click.echo(line, err=err)

    def _lines(self) -> Iterator[str]:
        yield from (cell_line(cell) for cell in self._result.cells)
        yield from closing_lines(self._result)
        yield printable(f"report: {self._case / PAGE}")


def summary(result: BatchResult) -> str:
    """Return the batch in Markdown: the counts, a row for each cell that is not as expected, and their commands."""
    cells = [cell for cell in result.cells if cell.outcome is CellOutcome.UNEXPECTED]
    columns: Sequence[Column[CellResult]] = (
        Column("cell", lambda cell: cell.name),
        Column("output", lambda cell: _first(cell).output, Looks.NAME),
        Column("of its limit", lambda cell: _first(cell).ratio_words, Looks.NUMBER),
        Column("op", lambda cell: _first(cell).op, Looks.NAME),
        Column("module", lambda cell: _first(cell).module, Looks.NAME),
        Column("expected", lambda cell: cell.expected),
        Column("why not", lambda cell: cell.reason, Looks.SENTENCE),
        Column("note", lambda cell: cell.note),
    )
    remarks = [] if cells else ["all as expected"]
    table = Table.of("Not as expected", "cell", columns, cells)
    return issue_text(counted(result), remarks, table, [cell.line for cell in cells[:_MOST_LINES]])


def _first(cell: CellResult) -> Finding:
    found = cell.ending.findings if cell.ending else ()
    return found[0] if found else Finding("", "", "")
