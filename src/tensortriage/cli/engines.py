"""``triage engines``: a group whose commands belong to the package of engines."""

import click

from tensortriage.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup, commands_table={}, entry_points="tensortriage.commands.engines", invoke_without_command=True
)
@click.pass_context
def engines(context: click.Context) -> None:
    """List every engine, whether it can be used here, and the one command that makes it usable."""
    if context.invoked_subcommand is None:
        listing = engines.get_command(context, "list")
        assert listing is not None, "it belongs to another package"
        context.invoke(listing, as_json=False)
