"""What was found of a model's steps, as ``steps`` shows it and ``report`` shows it again from the case."""

from collections.abc import Iterator
from pathlib import Path

import click

from tensortriage.cli.documents import print_document
from tensortriage.errors import UsageError
from tensortriage.report.formats import markdown
from tensortriage.report.renderers import ReportFormat, write
from tensortriage.report.terminal.lines import Line, plain, show, width
from tensortriage.report.terminal.table_text import table_lines
from tensortriage.values import serial
from tensortriage.values.printable import printable
from tensortriage.workflows.steps.shown_steps import remarks_of, render_steps, steps_table, telling
from tensortriage.workflows.steps.steps_request import StepsReport
from tensortriage.workflows.steps.walk import DATA, PAGE, case_files


def print_report(report: StepsReport, case: Path, *, err: bool = False) -> None:
    """Show a report and where it is.

    Args:
        report: What was found.
        case: Its case.
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


def show_again(case: Path, wanted: ReportFormat, output: Path | None, *, to_stdout: bool, as_json: bool) -> None:
    """Render the steps of a case once more.

    Args:
        case: The case.
        wanted: The format.
        output: File to write; None for that of the format, or stdout.
        to_stdout: Whether a document goes there, whatever its format.
        as_json: Whether stdout has to hold the report as JSON.

    Raises:
        UsageError: For a format that shows a graph (``report-format-steps``).
        StoreError: When ``steps.json`` is damaged, or the file cannot be written.
    """
    report = serial.load(case / DATA, StepsReport)
    text = _rendered(report, wanted.name)
    place = None if to_stdout else output or (case / wanted.file_name if wanted.file_name else None)
    if place is not None:
        write(text, place)
        click.echo(f"wrote {printable(str(place))}", err=as_json)
    elif wanted.name == "console" and not to_stdout and not as_json:
        print_report(report, case)
    elif not as_json:
        print_document(text)
    if as_json:
        print_document(serial.to_json(report))


def _rendered(report: StepsReport, name: str) -> str:
    if name == "html":
        return render_steps(report)
    if name == "json":
        return serial.to_json(report)
    if name not in ("console", "markdown"):
        raise UsageError(
            f"'{name}' shows tensors on a graph, and this case is about steps",
            slug="report-format-steps",
            cure="take console, html, json or markdown, or render the diagnosis of the wrong step: CASE/step-N",
        )
    heading, following = f"model {report.model}, target {report.target}", [f"next: {line}" for line in report.next]
    if name == "console":
        lines = [heading, *map(plain, _lines(report)), _summary(report), *following]
        return "\n".join(map(printable, lines))
    table = markdown.table_lines(steps_table(telling(report.rows)))
    remarks = [f"- {markdown.plain(remark)}" for remark in (heading, *remarks_of(report))]
    commands = markdown.fenced(report.next)
    return "\n".join([f"**{markdown.plain(_summary(report))}**", "", *remarks, "", *table, *commands])


def _lines(report: StepsReport, width: int = 0) -> Iterator[Line]:
    rows = telling(report.rows)
    yield from table_lines(steps_table(rows), width=width, indent="") if rows else ()
    if len(rows) < len(report.rows):
        yield f"... {len(report.rows) - len(rows)} other steps are right"
    yield from remarks_of(report)


def _summary(report: StepsReport) -> str:
    return printable(f"{report.verdict}: {report.summary}")
