"""What the commands that look into engines share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tensortriage.cli.options import limit_options, option
from tensortriage.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def engine_options(function: F) -> F:
    """Add the options that name an engine and bound it."""
    for add in reversed((
        option("--target", "-t", metavar="ENGINE", heading="Engine", help="Engine to ask, NAME[:key=value,...]."),
        option("--external-data-dir", "--load-external-data", "--ext", "external_data_dir",
               type=click.Path(path_type=Path), metavar="DIR", heading="Engine", rare=True,
               help="Where external data are when not beside the model."),
        limit_options,
    )):  # fmt: skip
        function = add(function)
    return function


def required_target(target: str | None, command: str, model: Path) -> str:
    """Return the target, or complain with a ready command for each engine that can be used here.

    Raises:
        UsageError: When there is none (slug ``target-missing``).
    """
    if target:
        return target
    from tensortriage.cli.diagnosing import READY
    from tensortriage.engines.registry import availabilities

    usable = [name for name, available in availabilities().items() if available.usable and name in READY]
    commands = "; ".join(f"triage {command} {model} --target {READY[name]}" for name in usable)
    raise UsageError("no --target: which engine?", slug="target-missing", cure=f"try {commands}")
