"""``triage report``: render a case again, in any format, without any engine."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tensortriage.cli.declared import command
from tensortriage.cli.documents import print_document
from tensortriage.values.options import argument, option
from tensortriage.values.output_files import Place
from tensortriage.values.printable import printable

if TYPE_CHECKING:
    from tensortriage.report.document import Report

EPILOG = """\b
Examples:
  triage report                             the verdict of ./triage-case in the terminal
  triage report study --format html         writes study/report.html
  triage report study --format markdown     text for an issue, on stdout
  triage report study -o verdict.md         the ending picks the format
  triage report study --format model-explorer -o colours.json
"""


@command(epilog=EPILOG)
def report(
    case: Path = argument("CASE", default=Path("triage-case")),
    format_name: str | None = option(
        "--format -f", "FORMAT", "console, html, json, markdown or model-explorer  [default: by the ending of -o, "
        "else console].", default=None, group="Result"),
    output: Path | None = option(
        "--output -o", "FILE", "File to write, - for stdout  [default: html and model-explorer go into CASE, others "
        "to stdout].", default=None, writes=Place.FILE),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Render CASE, a directory that 'triage diagnose' or 'triage steps' wrote, once more.

    Exits with 0 whatever the verdict: the exit code of the verdict is that of the command. With --json, stdout
    holds the report as JSON, whatever else is written.
    """
    from tensortriage.report.document import Report
    from tensortriage.report.renderers import FORMATS, find_format, write

    to_stdout = output is not None and str(output) == "-"
    chosen = find_format(format_name, None if to_stdout else output)
    if _about_steps(case):
        from tensortriage.cli.steps.shown import show_again

        show_again(case, chosen, None if to_stdout else output, to_stdout=to_stdout, as_json=as_json)
        return
    loaded = Report.load(case)
    if output is None and chosen.file_name:
        output = case / chosen.file_name
    if output is not None and not to_stdout:
        write(chosen.render(loaded), output)
        click.echo(f"wrote {printable(str(output))}", err=as_json)
    elif not (as_json and format_name in (None, "json")):
        _print(loaded, chosen.name, err=as_json)
    if as_json:
        print_document(FORMATS["json"].render(loaded))


def _about_steps(case: Path) -> bool:
    return (case / "steps.json").is_file() and not (case / "verdict.json").is_file()


def _print(loaded: "Report", format_name: str, *, err: bool) -> None:
    from tensortriage.report.formats import console
    from tensortriage.report.renderers import FORMATS

    if format_name == "console":
        console.show(loaded, sys.stderr if err else sys.stdout)
    else:
        print_document(FORMATS[format_name].render(loaded), err=err)
