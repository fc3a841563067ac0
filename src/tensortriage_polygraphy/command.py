"""``triage polygraphy COMMAND ...``: answers as Polygraphy would, so that an alias switches a script by one line.

The commands are those of the core. Differences are in `tensortriage_polygraphy.dialect`; the defaults are here.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import click

from tensortriage.sdk import LazyGroup, given_to, speak
from tensortriage_polygraphy.dialect import PolygraphyDialect

COMMANDS = {
    "run": "Run on one or more engines and compare.",
    "convert": "Write a model as another, or as an engine.",
    "inspect": "Look into models, tactics and data.",
    "check": "Lint; judge saved results by new limits.",
    "surgeon": "Edit models.",
    "debug": "Reduce, study builds and precision, repeat a check.",
    "data": "Merge and concatenate saved data.",
}


class Shell(LazyGroup):
    """The commands of the core that Polygraphy has too; they answer in its words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Have everything from here on speak as Polygraphy does."""
        speak(ctx, PolygraphyDialect())
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of the core."""
        from tensortriage.sdk import cli

        return cli.get_command(ctx, cmd_name) if cmd_name in COMMANDS else None


def _passing_case() -> Path:
    """Return a case of this run alone: there, every run starts again."""
    folder = Path(tempfile.mkdtemp(prefix="triage-case-"))
    click.get_current_context().call_on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder / "case"


_REPLAY = "polygraphy_debug_replay.json"
_DEFAULTS: dict[str, Any] = {
    "run": {"seed": 1},
    "check": {"lint": {"seed": 1}},
    "surgeon": {"extract": {"seed": 1}, "sanitize": {"seed": 1}},
    "debug": {
        "reduce": {"case": _passing_case, "save_debug_replay": _REPLAY, "mode": "bisect"},
        "precision": {"case": _passing_case, "save_debug_replay": _REPLAY},
        "repeat": {"save_debug_replay": _REPLAY},
        "build": {"case": _passing_case, "no_pin": True},
    },
}


def _version(context: click.Context, _: click.Parameter | None = None, value: object = True) -> None:
    if value and not context.resilient_parsing:
        from tensortriage import __version__

        click.echo(f"Polygraphy | Version: 0.53.6 | as taken by triage {__version__}")
        context.exit()


@click.group(
    cls=Shell,
    commands_table={name: ("", text) for name, text in COMMANDS.items()},
    invoke_without_command=True,
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
              help="Show the version and exit; -v without a command too.")  # fmt: skip
@click.pass_context
def polygraphy(context: click.Context) -> None:
    """Answer as Polygraphy does, for existing scripts: printed lines, file names, defaults and exit codes.

    Put "alias polygraphy='triage polygraphy'" into the shell that runs your scripts.
    """
    context.default_map = _DEFAULTS
    if context.invoked_subcommand is None:
        if given_to(context)["more"]:
            _version(context)
        click.echo(context.get_help())
