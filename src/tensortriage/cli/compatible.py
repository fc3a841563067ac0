"""``triage polygraphy COMMAND ...``: answers as Polygraphy would, so that an alias switches a script by one line.

The commands are the same ones. What differs lies here and in `tensortriage.cli.run.compatible`: Polygraphy's defaults,
its first and last lines on stdout, and its exit codes. Its faults are not copied: nothing passes that was not compared.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import click

from tensortriage.cli.lazy import LazyGroup
from tensortriage.cli.logs import given_to
from tensortriage.errors import TriageError

KEY = "tensortriage.compatible"
"""Where a context keeps whether it is about this."""
COMMANDS = {
    "run": ("tensortriage.cli.run.command:run", "Run on one or more engines and compare."),
    "convert": ("tensortriage.cli.convert.command:convert", "Write a model as another, or as an engine."),
    "inspect": ("tensortriage.cli.groups:inspect", "Look into models, tactics and data."),
    "check": ("tensortriage.cli.groups:check", "Lint; saved results by other limits."),
    "surgeon": ("tensortriage.cli.groups:surgeon", "Edit models."),
    "debug": ("tensortriage.cli.groups:debug", "Reduce, study builds and precision, repeat a check."),
    "data": ("tensortriage.cli.data:data", "Merge and concatenate saved data."),
}
_FAILED, _USAGE = 1, 2


def _passing_case() -> Path:
    """Return a case of this run alone: there, every run begins anew."""
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


@click.group(cls=LazyGroup, commands_table=COMMANDS, invoke_without_command=True)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
              help="Show the version and exit; -v without a command too.")  # fmt: skip
@click.pass_context
def polygraphy(context: click.Context) -> None:
    """Accept Polygraphy's command lines and answer as it does: printed lines, file names, defaults and exit codes.

    Put "alias polygraphy='triage polygraphy'" into the shell that runs your scripts.
    """
    context.meta[KEY] = True
    context.default_map = _DEFAULTS
    if context.invoked_subcommand is None:
        if given_to(context)["more"]:
            _version(context)
        click.echo(context.get_help())


def is_asked(words: list[str]) -> bool:
    """Whether a command line begins with the word."""
    return next((word for word in words if not word.startswith("-")), "") == "polygraphy"


def exit_code(words: list[str], code: int, error: BaseException | None) -> int:
    """Return Polygraphy's exit code for what one of our commands ended with.

    Args:
        words: The command line.
        code: Our exit code.
        error: Why it ended early; None when it did its work.
    """
    if isinstance(error, click.UsageError) and not isinstance(error, click.NoSuchOption):
        return _USAGE
    if isinstance(error, TriageError | click.NoSuchOption | OSError):
        return _FAILED
    if error is None and {"debug", "inspect"} & set(words[:3]) and code in (1, 4):
        return 0  # the tool ran; what it found is in its lines and files
    return code
