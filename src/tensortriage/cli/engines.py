"""``triage engines``: the test of an engine's contract; the list and environments are of `tensortriage_engines`."""

import sys
from typing import TYPE_CHECKING

import click

from tensortriage.cli.declared import command
from tensortriage.cli.documents import print_document
from tensortriage.cli.lazy import LazyGroup
from tensortriage.runs.options.request_fields import LimitOptions
from tensortriage.values.options import argument, part

if TYPE_CHECKING:
    from tensortriage.engines.base import Limits


COMMANDS = {
    "check": ("tensortriage.cli.engines:check_command", "Test all that is relied on in an engine."),
}


@click.group(
    cls=LazyGroup, commands_table=COMMANDS, entry_points="tensortriage.commands.engines", invoke_without_command=True
)
@click.pass_context
def engines(context: click.Context) -> None:
    """List every engine, whether it can be used here, and the one command that makes it usable."""
    if context.invoked_subcommand is None:
        listing = engines.get_command(context, "list")
        assert listing is not None, "it is of the package beside this one"
        context.invoke(listing, as_json=False)


CHECK_EPILOG = """\b
Examples:
  triage engines check openvino:precision=fp32
  triage engines check script:my_engine.py --json
"""


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
