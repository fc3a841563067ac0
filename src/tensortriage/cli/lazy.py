"""A click group whose commands are imported when used; listing them needs only a table (click's lazy pattern).

Other packages add commands by entry points, to the group of the whole command line and to those of its groups
(``tensortriage.commands.inspect``). They are listed without being imported; a word of the table cannot be taken over.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import click

from tensortriage.cli.logs import log_parameters
from tensortriage.errors import UsageError, did_you_mean
from tensortriage.values.registered import EntryPoint, registered


class CommandGroup(click.Group):
    """A group that takes the logging options in front of the command word too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += log_parameters(hidden=True)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let click parse.

        Raises:
            UsageError: For an option that another program has here and we do not.
        """
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from tensortriage.cli.refusals import refused

            raise refused(" ".join(ctx.command_path.split()[1:]), error.option_name) or error from None


class LazyGroup(CommandGroup):
    """A group with a table ``name -> ("module:attribute", one-line help)``.

    Args:
        *args: Arguments of `click.Group`.
        commands_table: The table.
        entry_points: Entry-point group of commands of other packages; empty for none.
        page: Returns the help of the group; None for click's.
        **kwargs: Keyword arguments of `click.Group`.
    """

    def __init__(
        self,
        *args: Any,
        commands_table: Mapping[str, tuple[str, str]],
        entry_points: str = "",
        page: Callable[[], str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._table = commands_table
        self._group = entry_points
        self._page = page

    def get_help(self, ctx: click.Context) -> str:
        """Return the help page."""
        return super().get_help(ctx) if self._page is None else self._page().rstrip("\n")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table, then those of other packages."""
        return [*self._table, *self._registered()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command.

        Raises:
            UsageError: When the package that registers it cannot be loaded (``command-broken``).
        """
        if cmd_name not in self._table:
            point = self._registered().get(cmd_name)
            return None if point is None else _loaded(point)
        module, _, attribute = self._table[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def _registered(self) -> Mapping[str, EntryPoint]:
        """Return the commands of other packages by name."""
        found = registered(self._group) if self._group else {}
        return {name: point for name, point in found.items() if name not in self._table}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, with a suggestion when it is misspelt.

        Raises:
            UsageError: For a command that another program has, and for any other word (``command-unknown``).
        """
        known = self._table if not args or args[0] in self._table else self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            from tensortriage.cli.refusals import refused

            if (error := refused(" ".join(ctx.command_path.split()[1:]), args[0])) is not None:
                raise error
            meant = did_you_mean(args[0], known)
            hint = f", {meant}" if meant else f"; commands: {', '.join(known)}"
            raise UsageError(
                f"no command '{args[0]}'{hint}", slug="command-unknown", cure=f"see {ctx.command_path} --help"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table and from the sources of other packages, importing none."""
        rows = [(name, text) for name, (_, text) in self._table.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows + [(name, point.summary()) for name, point in self._registered().items()])


def _loaded(point: EntryPoint) -> click.Command:
    try:
        command = point.load()
        if not isinstance(command, click.Command):
            raise TypeError(f"{point.value} is no command")
    except Exception as error:  # importing another's module may raise anything
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(
            f"command '{point.name}' cannot be loaded: {text}",
            slug="command-broken",
            cure=f"reinstall the package that provides '{point.name}'",
        ) from error
    return command
