"""``triage batch``: many models, feeds, targets and commands, each with its expected result."""

import contextlib
import sys
from typing import Any

from tensortriage.sdk import answer, command, duration, parse_bytes, printable
from tensortriage_fleet.batch.request import BatchRequest

EPILOG = """\b
Examples:
  triage batch release.yaml
  triage batch release.toml --jobs 4 --timeout 600
  triage batch release.yaml --cluster ray://head:10001
  triage batch release.yaml --junit batch.xml --json

\b
Exit codes: 0 all as expected; 1 not; 2 bad input; 3 no cluster; 130 interrupted (run again to resume).
"""


@command(epilog=EPILOG)
def batch(request: BatchRequest, as_json: bool) -> None:
    """Run many models, feeds and targets from one file, and compare with the expected results.

    FILE is YAML or TOML; the files that it names are relative to it. Each cell, a command on a model, a feed and a
    target, is a process of its own. Cells that have ended are not run again, unless the model, the feed, the options or
    a version has changed. report.html in the case shows them all.
    """
    from tensortriage.sdk import Teller, to_plain
    from tensortriage_fleet.batch.batch import BatchProgress, run_batch
    from tensortriage_fleet.batch.batch_result import CellOutcome
    from tensortriage_fleet.batch.batch_text import cell_line, closing_lines
    from tensortriage_fleet.batch.shown import summary
    from tensortriage_fleet.findings import github

    parse_bytes(request.memory_limit)
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
    plain: Any = to_plain(result)
    github.tell(plain, request.case, summary(result), err=as_json)
    if as_json:
        answer(result, (), as_json=True)
    sys.exit(130 if result.interrupted else result.exit_code)
