"""``triage engines``: the list of engines, environments for them, and the test of an engine's contract."""

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from tensortriage.cli.declared import command
from tensortriage.cli.documents import answer, print_document
from tensortriage.cli.lazy import CommandGroup
from tensortriage.runs.request_fields import LimitOptions
from tensortriage.values.options import argument, part

if TYPE_CHECKING:
    from tensortriage.engines.base import Limits


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def engines(context: click.Context) -> None:
    """List every engine, whether it can be used here, and the one command that makes it usable."""
    if context.invoked_subcommand is None:
        context.invoke(list_command, as_json=False)


LIST_EPILOG = """\b
Examples:
  triage engines list
  triage engines list --json
"""
INSTALL_EPILOG = """\b
Examples:
  triage engines install openvino
  triage engines install openvino==2024.0.0
"""
CHECK_EPILOG = """\b
Examples:
  triage engines check openvino:precision=fp32
  triage engines check script:my_engine.py --json
"""


@command("list", epilog=LIST_EPILOG)
def list_command(as_json: bool) -> None:
    """List every engine, whether it can be used here, and the one command that makes it usable."""
    from tensortriage.report.terminal.engines_text import engine_line, environment_line
    from tensortriage.workflows.engines.environments import list_engines

    found = list_engines()
    lines = []
    for row in found.engines:
        here = " ".join(filter(None, (row.version, row.device)))
        lines.append(engine_line(row.name, here if row.usable else None, row.reason, row.command))
        lines += [environment_line(each.target, each.version) for each in row.environments]
    answer(found, lines, as_json=as_json)


@command("install", epilog=INSTALL_EPILOG)
def install_command(engine: str = argument("NAME[==VERSION]"), *, as_json: bool) -> None:
    """Make a virtual environment for an engine in the user's data folder, with pinned requirements.

    With a version the environment stands beside others, for --against and for --target with worker=.
    """
    from tensortriage.cli.progress import Teller
    from tensortriage.report.terminal.engines_text import target_line
    from tensortriage.workflows.engines.environments import install

    with contextlib.closing(Teller(err=True)) as teller:
        made = install(engine, say=teller.progress)
    answer(made, [target_line(f"{made.engine} {made.version}", made.target)], as_json=as_json)


@command("check", epilog=CHECK_EPILOG)
def check_command(
    spec: str = argument("ENGINE"),
    limits: "Limits" = part(factory=LimitOptions, memory_limit=None),
    *,
    as_json: bool,
) -> None:
    """Test all that is relied on in an engine (NAME[:key=value,...]), by closed formulas; exit code 1 if it fails."""
    from tensortriage.report.terminal.engines_text import conformance_lines
    from tensortriage.report.terminal.lines import show
    from tensortriage.workflows.engines.conformance import conformance_of

    found = conformance_of(spec, limits=limits)
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(found))
    show(conformance_lines(found.engine, found.passed, found.refused, found.failures), err=as_json)
    sys.exit(1 if found.failures else 0)


for _command in (list_command, install_command, check_command):
    engines.add_command(_command)
