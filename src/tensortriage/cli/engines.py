"""``triage engines``: the list of engines, environments for them, and the test of an engine's contract."""

import contextlib
import sys

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.lazy import CommandGroup
from tensortriage.cli.options import GuideCommand, common, option


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


@engines.command("list", cls=GuideCommand, epilog=LIST_EPILOG)
@common
def list_command(as_json: bool) -> None:
    """List every engine, whether it can be used here, and the one command that makes it usable."""
    from tensortriage.report.terminal.engines_text import engine_line, environment_line
    from tensortriage.workflows.engines.environments import list_engines

    found = list_engines()
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(found))
        return
    for row in found.engines:
        click.echo(
            engine_line(
                row.name,
                usable=row.usable,
                version=row.version,
                device=row.device,
                reason=row.reason,
                command=row.command,
            )
        )
        for environment in row.environments:
            click.echo(environment_line(environment.target, environment.version))


@engines.command("install", cls=GuideCommand, epilog=INSTALL_EPILOG)
@click.argument("engine", metavar="NAME[==VERSION]")
@common
def install_command(engine: str, as_json: bool) -> None:
    """Make a virtual environment for an engine in the user's data folder, with pinned requirements.

    With a version the environment stands beside others, for --against and for --target with worker=.
    """
    from tensortriage.cli.progress import Teller
    from tensortriage.workflows.engines.environments import install

    with contextlib.closing(Teller(err=True)) as teller:
        made = install(engine, say=teller.progress)
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(made))
        return
    from tensortriage.report.terminal.engines_text import target_line

    click.echo(target_line(f"{made.engine} {made.version}", made.target))


@engines.command("check", cls=GuideCommand, epilog=CHECK_EPILOG)
@click.argument("spec", metavar="ENGINE")
@option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", heading="Limits",
        help="Time limit of each build or run of an engine in its own process.")  # fmt: skip
@common
def check_command(spec: str, timeout: float | None, as_json: bool) -> None:
    """Test all that is relied on in an engine (NAME[:key=value,...]), by closed formulas; exit code 1 if it fails."""
    from tensortriage.cli.requests import limits_of
    from tensortriage.report.terminal.engines_text import conformance_lines
    from tensortriage.workflows.engines.conformance import conformance_of

    found = conformance_of(spec, limits=limits_of(timeout, ""))
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(found))
    for line in conformance_lines(found.engine, found.passed, found.refused, found.failures):
        click.echo(line, err=as_json)
    sys.exit(1 if found.failures else 0)
