"""``triage report``: render a case again, in any format, without any engine."""

import json
import sys
from pathlib import Path
from typing import Any, Protocol, cast

import click

from tensortriage.cli.declared import command
from tensortriage.cli.documents import print_document
from tensortriage.errors import UsageError
from tensortriage.values.options import argument, option
from tensortriage.values.output_files import Place
from tensortriage.values.printable import printable
from tensortriage.values.registered import registered

GROUP = "tensortriage.cases"
"""Entry-point group of classes that make a `ShownCase` of a case of another command; an entry has the name of the
case's result file, ``steps`` for ``steps.json``."""

EPILOG = """\b
Examples:
  triage report                             the verdict of ./triage-case in the terminal
  triage report study --format html         writes study/report.html
  triage report study --format markdown     text for an issue, on stdout
  triage report study -o verdict.md         the ending picks the format
  triage report study --format model-explorer -o colours.json
  triage report triage-batch -o triage.sarif
"""


class ShownCase(Protocol):
    """Results of a case, read again."""

    def render(self, format_name: str) -> str:
        """Return it in a format.

        Raises:
            UsageError: For a format that it does not have.
        """

    def show(self, *, err: bool) -> None:
        """Show the report in the terminal; on stderr on request."""


@command(epilog=EPILOG)
def report(
    case: Path = argument("CASE", default=Path("triage-case")),
    format_name: str | None = option(
        "--format -f", "FORMAT", "console, html, json, markdown, model-explorer, or for CI github, junit or sarif  "
        "[default: by the ending of -o, else console].", default=None, group="Result"),
    output: Path | None = option(
        "--output -o", "FILE", "File to write, - for stdout  [default: html and model-explorer go into CASE, others "
        "to stdout].", default=None, writes=Place.FILE),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Render CASE, a directory that 'triage diagnose', 'steps' or 'batch' wrote, once more.

    Formats for CI take the file of any document too, as --json prints it.

    Exits with 0 whatever the verdict: the exit code of the verdict is that of the command. With --json, stdout
    holds the report as JSON, whatever else is written.
    """
    from tensortriage.report.renderers import FORMATS, find_format
    from tensortriage.values.files import write_text

    to_stdout = output is not None and str(output) == "-"
    chosen = find_format(format_name, None if to_stdout else output)
    shown = _shown(case)

    def text() -> str:
        own = chosen.name in FORMATS
        return shown.render(chosen.name) if own else chosen.render(json.loads(shown.render("json")), case)

    if output is None and chosen.file_name:
        output = case / chosen.file_name
    if output is not None and not to_stdout:
        write_text(output, text())
        click.echo(f"wrote {printable(str(output))}", err=as_json)
    elif not (as_json and format_name in (None, "json")):
        if chosen.name == "console":
            shown.show(err=as_json)
        else:
            print_document(text(), err=as_json)
    if as_json:
        print_document(shown.render("json"))


def _shown(case: Path) -> ShownCase:
    if case.is_file():
        return _Document(case)
    if not (case / "verdict.json").is_file():
        for name, point in registered(GROUP).items():
            if (case / f"{name}.json").is_file():
                return cast(ShownCase, point.load()(case))
    return _Diagnosis(case)


class _Diagnosis:
    def __init__(self, case: Path) -> None:
        from tensortriage.report.document import Report

        self._report = Report.load(case)

    def render(self, format_name: str) -> str:
        from tensortriage.report.renderers import FORMATS

        return FORMATS[format_name].render(self._report)

    def show(self, *, err: bool) -> None:
        from tensortriage.report.formats import console

        console.show(self._report, sys.stderr if err else sys.stdout)


class _Document:
    def __init__(self, file: Path) -> None:
        from tensortriage.values.serial import load

        self._file, self._content = file, load(file, dict[str, Any])

    def render(self, format_name: str) -> str:
        if format_name != "json":
            raise UsageError(
                f"{self._file} is a document, which is not shown as {format_name}",
                slug="report-format-document",
                cure="add --format github, junit or sarif, or give the directory of a case",
            )
        return json.dumps(self._content)

    def show(self, *, err: bool) -> None:
        self.render("console")
