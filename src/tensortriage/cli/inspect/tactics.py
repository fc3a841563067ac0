"""``triage inspect tactics``: the tactics that a file records."""

from pathlib import Path

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.options import READ, GuideCommand, common

EPILOG = """\b
Examples:
  triage inspect tactics tactics.json
  triage inspect tactics replay.json                (a tactic replay of Polygraphy)
  triage inspect tactics verbose_build.log --json   (of a build with an editable timing cache)
"""


@click.command(cls=GuideCommand, epilog=EPILOG)
@click.argument("file", type=READ)
@common
def inspect_tactics(file: Path, as_json: bool) -> None:
    """Show the tactics in FILE: a record of --save-tactics, a replay of Polygraphy, or a verbose log of TensorRT."""
    from tensortriage.runs.tactics import load_record

    record = load_record(file)
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(record))
        return
    from tensortriage.report.terminal.tactics_text import record_lines

    for line in record_lines(record):
        click.echo(line)
