"""What the commands that look into engines share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tensortriage.cli.options import external_data_option, limit_options, option, together
from tensortriage.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


engine_options = together(
    option("--target", "-t", metavar="ENGINE", heading="Engine", help="Engine to ask, NAME[:key=value,...]."),
    external_data_option("Engine"),
    limit_options,
)  # fmt: skip
"""What name an engine and bound it."""


def required_target(target: str | None, command: str, model: Path) -> str:
    """Return the target, or complain with a ready command for each engine that can be used here.

    Raises:
        UsageError: When there is none (slug ``target-missing``).
    """
    if target:
        return target
    from tensortriage.cli.diagnose.request import READY
    from tensortriage.engines.registry import availabilities

    usable = [name for name, available in availabilities().items() if available.usable and name in READY]
    commands = "; ".join(f"triage {command} {model} --target {READY[name]}" for name in usable)
    raise UsageError("no --target: which engine?", slug="target-missing", cure=f"try {commands}")
