"""A batch as one page: a table of models and feeds against targets and commands, each cell with a link to its report.

As safe as the report of a case: every expression is escaped, and the page may run no script at all.
"""

import dataclasses
import importlib.resources
from collections.abc import Sequence

from tensortriage.sdk import Column, Looks, Table, TableCell, page
from tensortriage_fleet.batch.batch_result import BatchResult, CellOutcome, CellResult

SIGNS = {
    CellOutcome.AS_EXPECTED: "✓",
    CellOutcome.UNEXPECTED: "✗",
    CellOutcome.SKIPPED: "–",
    CellOutcome.NOT_RUN: "…",
}


@dataclasses.dataclass(frozen=True, slots=True)
class OverviewRow:
    """A row of the table: a model on a feed, with a cell or None for each column."""

    model: str
    feed: str
    cells: Sequence[CellResult | None]


@dataclasses.dataclass(frozen=True, slots=True)
class OverviewTable:
    """Rows of models and feeds, columns of targets and commands; cells with neither have their own table."""

    columns: Sequence[tuple[str, str]]
    rows: Sequence[OverviewRow]


def render_overview(result: BatchResult) -> str:
    """Return a self-contained page; links in it lead to the neighbouring folders of the cells."""
    here = importlib.resources.files("tensortriage_fleet.batch")
    return page(
        (here / "batch.html.j2").read_text(encoding="utf-8"),
        style=(here / "batch.css").read_text(encoding="utf-8"),
        filters={"sign": SIGNS.__getitem__, "in_short": _in_short},
        result=result,
        tables=tables(result.cells),
        unexpected=_unexpected(result),
        counts=[(outcome, result.count_of(outcome)) for outcome in CellOutcome],
    )


def _summary(cell: CellResult) -> str:
    return cell.ending.summary if cell.ending else ""


def _in_short(cell: CellResult) -> str:
    """Return the outcome of a cell; unexpected ones have their sentences in a separate table."""
    assert cell.ending is not None
    summary = "" if cell.outcome is CellOutcome.UNEXPECTED else cell.ending.summary
    return cell.ending.verdict or summary or ("no end" if cell.ending.code is None else f"exit code {cell.ending.code}")


def _unexpected(result: BatchResult) -> Table:
    columns: Sequence[Column[CellResult]] = (
        Column("cell", lambda cell: TableCell(cell.name, link=cell.report)),
        Column("expected", lambda cell: cell.expected),
        Column("note", lambda cell: cell.note, Looks.QUIET),
        Column("why not", lambda cell: cell.reason.removesuffix(f": {_summary(cell)}"), Looks.SENTENCE),
        Column("its output", lambda cell: _summary(cell) if _summary(cell) != cell.reason else "", Looks.SENTENCE),
        Column("command", lambda cell: cell.line, Looks.CODE),
    )
    cells = [cell for cell in result.cells if cell.outcome is CellOutcome.UNEXPECTED]
    return Table.of("Not as expected", "cell", columns, cells)


def tables(cells: Sequence[CellResult]) -> list[OverviewTable]:
    """Return the cells in tables: those of commands that take feeds, and those of commands that take none."""
    found = []
    for with_feed in (True, False):
        part = [cell for cell in cells if bool(cell.feed) is with_feed]
        columns = list(dict.fromkeys((cell.target, cell.command) for cell in part))
        places = {(cell.model, cell.feed, cell.target, cell.command): cell for cell in part}
        rows = [
            OverviewRow(model, feed, [places.get((model, feed, *column)) for column in columns])
            for model, feed in dict.fromkeys((cell.model, cell.feed) for cell in part)
        ]
        if rows:
            found.append(OverviewTable(columns, rows))
    return found
