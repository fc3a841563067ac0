"""``triage inspect tactics`` and ``diff-tactics``: the choices in files, and those that only bad builds made."""

import sys
from pathlib import Path

from tensortriage.sdk import UsageError, answer, argument, command, option

_EPILOG = """\b
Examples:
  triage inspect tactics tactics.json
  triage inspect tactics replay.json                (a tactic replay of Polygraphy)
  triage inspect tactics verbose_build.log --json   (of a build with an editable timing cache)
"""


_DIFF_EPILOG = """\b
Examples:
  triage inspect diff-tactics --dir triage-case
  triage inspect diff-tactics --dir polygraphy_artifacts
  triage inspect diff-tactics --good good_replays --bad bad_replays --json

\b
Exit codes: 0 no tactic occurs in bad builds alone, 1 some do.
"""


@command(epilog=_EPILOG)
def inspect_tactics(file: Path = argument("FILE"), *, as_json: bool) -> None:
    """Show the tactics that FILE records.

    It is a record of --save-tactics, a replay of Polygraphy, or a verbose log of TensorRT.
    """
    from tensortriage.sdk import load_record
    from tensortriage_builds.tactic_text import record_lines

    record = load_record(file)
    answer(record, record_lines(record), as_json=as_json)


@command(epilog=_DIFF_EPILOG)
def inspect_diff_tactics(
    folder: Path | None = option("--dir", "DIR", "Directory with good/ and bad/.", default=None, group="Builds"),
    good: Path | None = option(
        "--good", "PATH", "File of a good build's tactics, or a directory of such files.", default=None
    ),
    bad: Path | None = option(
        "--bad", "PATH", "File of a bad build's tactics, or a directory of such files.", default=None
    ),
    *,
    as_json: bool,
) -> None:
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
    from tensortriage_builds.tactic_diff import diff_tactics
    from tensortriage_builds.tactic_text import diff_lines

    diff = diff_tactics([good], [bad])
    answer(diff, diff_lines(diff), as_json=as_json)
    sys.exit(1 if diff.only_bad else 0)
