"""``triage inspect tactics``: the tactics that a file records."""

from pathlib import Path

from tensortriage.cli.declared import command
from tensortriage.cli.documents import answer
from tensortriage.values.options import argument

EPILOG = """\b
Examples:
  triage inspect tactics tactics.json
  triage inspect tactics replay.json                (a tactic replay of Polygraphy)
  triage inspect tactics verbose_build.log --json   (of a build with an editable timing cache)
"""


@command(epilog=EPILOG)
def inspect_tactics(file: Path = argument("FILE"), *, as_json: bool) -> None:
    """Show the tactics in FILE: a record of --save-tactics, a replay of Polygraphy, or a verbose log of TensorRT."""
    from tensortriage.report.terminal.tactics_text import record_lines
    from tensortriage.runs.tactics import load_record

    record = load_record(file)
    answer(record, record_lines(record), as_json=as_json)
