"""Findings about a model's steps, for ``steps`` and, from the case, for ``report``."""

from collections.abc import Iterator
from pathlib import Path

import click

from tensortriage.sdk import (
    Line,
    UsageError,
    issue_text,
    load,
    plain,
    printable,
    show,
    table_lines,
    to_json,
    width,
)
from tensortriage_steps.shown_steps import remarks_of, render_steps, steps_table, telling
from tensortriage_steps.steps_report import StepsReport
from tensortriage_steps.walk import DATA, PAGE, case_files


def print_report(report: StepsReport, case: Path, *, err: bool = False) -> None:
    """Show a report and where it is.

    Args:
        report: The report.
        case: Case directory.
        err: On stderr.
    """
    show(_lines(report, width()), err=err)
    bad = report.exit_code != 0
    click.echo(err=err)
    click.echo(click.style(_summary(report), fg="red" if bad else "green", bold=True), err=err)
    for command in report.next[:3]:
        click.echo(printable(f"  next: {command}"), err=err)
    click.echo(printable(f"steps: {case / DATA}, {case / PAGE}"), err=err)
    for path in case_files(case) if report.diagnosis else ():
        click.echo(printable(f"report: {path}"), err=err)


class ShownSteps:
    """The steps of a case, rendered once more.

    Raises:
        StoreError: When ``steps.json`` is damaged.
    """

    def __init__(self, case: Path) -> None:
        self._case, self._report = case, load(case / DATA, StepsReport)

    def render(self, format_name: str) -> str:
        """Return the report in a format.

        Raises:
            UsageError: For one that shows a graph (``report-format-steps``).
        """
        report = self._report
        if format_name == "html":
            return render_steps(report)
        if format_name == "json":
            return to_json(report)
        heading = f"model {report.model}, target {report.target}"
        if format_name == "markdown":
            remarks = (heading, *remarks_of(report))
            return issue_text(_summary(report), remarks, steps_table(telling(report.rows)), report.next)
        if format_name == "console":
            following = [f"next: {line}" for line in report.next]
            return "\n".join(map(printable, [heading, *map(plain, _lines(report)), _summary(report), *following]))
        raise UsageError(
            f"'{format_name}' shows tensors on a graph, and this case is about steps",
            slug="report-format-steps",
            cure="use console, html, json or markdown, or render the diagnosis of the wrong step: CASE/step-N",
        )

    def show(self, *, err: bool) -> None:
        """Show it in the terminal."""
        print_report(self._report, self._case, err=err)


def _lines(report: StepsReport, width: int = 0) -> Iterator[Line]:
    rows = telling(report.rows)
    yield from table_lines(steps_table(rows), width=width, indent="") if rows else ()
    if len(rows) < len(report.rows):
        yield f"... {len(report.rows) - len(rows)} other steps are right"
    yield from remarks_of(report)


def _summary(report: StepsReport) -> str:
    return printable(f"{report.verdict}: {report.summary}")
