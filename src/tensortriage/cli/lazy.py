"""A click group whose commands are imported when used; listing them needs only a table (click's lazy pattern)."""

import importlib
from collections.abc import Mapping
from typing import Any

import click

from tensortriage.cli.logs.options import before_the_command, log_parameters
from tensortriage.errors import did_you_mean


class CommandGroup(click.Group):
    """A group that takes the logging options in front of the command word too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += log_parameters(hidden=True)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite lists of values in front of the command word, then let click parse."""
        return super().parse_args(ctx, before_the_command(args))


class LazyGroup(CommandGroup):
    """A group with a table ``name -> ("module:attribute", one-line help)``."""

    def __init__(self, *args: Any, commands_table: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = commands_table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        entry = self._table.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry[0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, with a suggestion when it is misspelt.

        Raises:
            UsageError: For a command that Polygraphy has and we do not.
            click.UsageError: For any other word.
        """
        if args and args[0] not in self._table and not args[0].startswith("-"):
            from tensortriage.cli.not_offered import refused_command

            if (refused := refused_command(args[0])) is not None:
                raise refused
            meant = did_you_mean(args[0], self._table)
            hint = f", {meant}" if meant else f"; commands: {', '.join(self._table)}"
            ctx.fail(f"no command '{args[0]}'{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, importing none."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])
