"""A result as a card in a notebook: the headline and the tables of the report, without its style and scripts."""

from collections.abc import Mapping, Sequence
from functools import partial

from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.report.case_tables import MOST_ROWS, culprits
from tensortriage.report.document import Report
from tensortriage.report.html_page import asset, compiled
from tensortriage.report.run_result import CompareResult
from tensortriage.report.tables import Column, Table
from tensortriage.report.terminal.run_text import compared_tensors, worst_feeds
from tensortriage.values.result import Result


def card(result: Result) -> str:
    """Return a result as HTML; everything in it is escaped."""
    verdict = result if isinstance(result, Verdict) else None
    return compiled(asset("card.html.j2"), ()).render(
        head=Report(verdict).headline if verdict else result.in_short,
        text=verdict.in_short if verdict else "",
        tables=[table for table in _tables(result) if table.rows],
        commands=verdict.next if verdict else (),
        most=MOST_ROWS,
    )


def _tables(result: Result) -> Sequence[Table]:
    if isinstance(result, Verdict):
        return [culprits(Report(result))]
    if isinstance(result, CompareResult):
        compared = ([item for item in result.comparisons if item.comparison.target == name] for name in result.targets)
        return [compared_tensors(worst_feeds(items)) for items in compared]
    rows = result.records
    columns = [Column(name, partial(_said, name)) for name in (rows[0] if rows else ())]
    return [Table.of("Nodes", "node", columns, rows)]


def _said(name: str, row: Mapping[str, object]) -> str:
    return str(row[name])
