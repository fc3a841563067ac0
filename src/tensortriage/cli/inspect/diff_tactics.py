"""``triage inspect diff-tactics``: tactics of bad builds that good builds lack."""

import sys
from pathlib import Path

from tensortriage.cli.declared import command
from tensortriage.cli.documents import answer
from tensortriage.errors import UsageError
from tensortriage.values.options import option

EPILOG = """\b
Examples:
  triage inspect diff-tactics --dir triage-case
  triage inspect diff-tactics --dir polygraphy_artifacts
  triage inspect diff-tactics --good good_replays --bad bad_replays --json

\b
Exit codes: 0 no tactic occurs in bad builds alone, 1 some do.
"""


@command(epilog=EPILOG)
def inspect_diff_tactics(
    folder: Path | None = option("--dir", "DIR", "Directory with good/ and bad/.", default=None, group="Builds"),
    good: Path | None = option(
        "--good", "PATH", "File of a good build's tactics, or a directory of such files.", default=None),
    bad: Path | None = option(
        "--bad", "PATH", "File of a bad build's tactics, or a directory of such files.", default=None),
    *,
    as_json: bool,
) -> None:  # fmt: skip
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
    from tensortriage.report.terminal.tactics_text import diff_lines
    from tensortriage.workflows.engines.recorded_tactics import diff_tactics

    diff = diff_tactics([good], [bad])
    answer(diff, diff_lines(diff), as_json=as_json)
    sys.exit(1 if diff.only_bad else 0)
