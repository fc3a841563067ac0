"""``triage inspect diff-tactics``: tactics of bad builds that good builds lack."""

import sys
from pathlib import Path

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.options import READ, GuideCommand, common, option
from tensortriage.errors import UsageError

EPILOG = """\b
Examples:
  triage inspect diff-tactics --dir triage-case
  triage inspect diff-tactics --dir polygraphy_artifacts
  triage inspect diff-tactics --good good_replays --bad bad_replays --json

\b
Exit codes: 0 no tactic occurs in bad builds alone, 1 some do.
"""
HEADING = "Builds"


@click.command(cls=GuideCommand, epilog=EPILOG)
@option("--dir", "folder", type=READ, metavar="DIR", heading=HEADING,
        help="Directory with good/ and bad/.")  # fmt: skip
@option("--good", type=READ, metavar="PATH", heading=HEADING,
        help="File of a good build's tactics, or a directory of such files.")  # fmt: skip
@option("--bad", type=READ, metavar="PATH", heading=HEADING,
        help="File of a bad build's tactics, or a directory of such files.")  # fmt: skip
@common
def inspect_diff_tactics(folder: Path | None, good: Path | None, bad: Path | None, as_json: bool) -> None:
    """Compare the tactics of good and bad builds, and rank those that go with failure.

    Files may be records of --save-tactics, replays of Polygraphy, or verbose logs of TensorRT; other files are ignored.
    """
    if folder is not None:
        good, bad = good or folder / "good", bad or folder / "bad"
    if good is None or bad is None:
        raise UsageError(
            "the tactics of good and of bad builds are needed",
            slug="tactics-one-sided",
            cure="give --dir DIR with the folders good/ and bad/, or --good PATH and --bad PATH",
        )
    from tensortriage.workflows.engines.recorded_tactics import diff_tactics

    diff = diff_tactics([good], [bad])
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(diff))
    else:
        from tensortriage.report.terminal.tactics_text import diff_lines

        for line in diff_lines(diff):
            click.echo(line)
    sys.exit(1 if diff.only_bad else 0)
