"""``triage batch``: many models, feeds, targets and commands, with what is expected of each."""

import contextlib
import sys
from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli.cluster.option import cluster_option
from tensortriage.cli.documents import print_document
from tensortriage.cli.option_values import BatchValues
from tensortriage.cli.options import READ, WRITTEN_CASE, WRITTEN_FILE, GuideCommand, common, option

EPILOG = """\b
Examples:
  triage batch release.yaml
  triage batch release.toml --jobs 4 --timeout 600
  triage batch release.yaml --cluster ray://head:10001
  triage batch release.yaml --junit batch.xml --json

\b
Exit codes: 0 all as expected; 1 not; 2 bad input; 130 interrupted (run again to go on).
"""
LIMITS, RESULT = "Limits", "Result"


@click.command(cls=GuideCommand, epilog=EPILOG)
@click.argument("file", type=READ)
@option("--jobs", "-j", type=click.IntRange(1), default=1, show_default=True, metavar="N", heading=LIMITS,
        help="Cells at once.")  # fmt: skip
@cluster_option(LIMITS, "Run cells there: ")
@option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", heading=LIMITS,
        help="Time limit of each cell  [default: what FILE says, else none].")  # fmt: skip
@option("--memory-limit", default="", metavar="BYTES", heading=LIMITS,
        help="Memory limit of each cell and of the engines that it starts, e.g. 8G.")  # fmt: skip
@option("--case", "case", type=WRITTEN_CASE, default="triage-batch", show_default=True, metavar="DIR", heading=RESULT,
        help="Directory of the results; a batch that is already there is resumed.")  # fmt: skip
@option("--junit", type=WRITTEN_FILE, metavar="FILE", heading=RESULT, help="File for the results as JUnit's XML.")
@common
def batch(file: Path, as_json: bool, **given: Unpack[BatchValues]) -> None:
    """Run the cells of FILE: its commands on its models, feeds and targets, and compare with what it expects.

    FILE is YAML or TOML; the files that it names are relative to it. Each cell is a process of its own. Cells that have
    ended are not run again, unless the model, the feed, the options or a version has changed. report.html in the case
    shows them all.
    """
    from tensortriage.cli.progress import Teller
    from tensortriage.cli.requests import cluster_of
    from tensortriage.report.batch.batch_result import CellOutcome
    from tensortriage.report.terminal.batch_text import cell_line, closing_lines
    from tensortriage.values.printable import printable
    from tensortriage.values.serial import to_json
    from tensortriage.values.text import duration, parse_bytes
    from tensortriage.workflows.batch.batch import BatchProgress, BatchRequest, run_batch

    parse_bytes(given["memory_limit"])
    request = BatchRequest(
        file=file,
        case=given["case"],
        jobs=given["jobs"],
        timeout_seconds=given["timeout"],
        memory_limit=given["memory_limit"],
        junit=given["junit"],
        cluster=cluster_of(given["cluster"]),
    )
    with contextlib.closing(Teller(err=as_json)) as teller:

        def observe(progress: BatchProgress) -> None:
            teller.tell(cell_line(progress.last), bold=progress.last.outcome is CellOutcome.UNEXPECTED)
            left = "" if progress.seconds_left is None else f", about {duration(progress.seconds_left)} left"
            teller.progress(f"{progress.done} of {progress.total} cells{left}")

        result = run_batch(request, observe=observe)
        teller.clear()
        for line in closing_lines(result):
            teller.tell(line)
        teller.tell(f"report: {printable(str(request.case / 'report.html'))}")
    if as_json:
        print_document(to_json(result))
    sys.exit(130 if result.interrupted else result.exit_code)
