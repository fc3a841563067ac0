"""The command groups of the guide whose members live in files of their own."""

import click

from tensortriage.cli.lazy import LazyGroup

CHECK = {
    "accuracy": ("tensortriage.cli.check.accuracy:check_accuracy", "Judge saved accuracy results by other limits."),
}

DEBUG = {
    "reduce": ("tensortriage.cli.debug.reduce:debug_reduce", "The smallest piece of a model that still fails."),
    "precision": (
        "tensortriage.cli.debug.precision:debug_precision",
        "Find the nodes that need more bits, and write the model.",
    ),
}


@click.group(cls=LazyGroup, commands_table={}, entry_points="tensortriage.commands.surgeon")
def surgeon() -> None:
    """Edit models; every edit is verified before it is written."""


@click.group(cls=LazyGroup, commands_table={}, entry_points="tensortriage.commands.inspect")
def inspect() -> None:
    """Look into models, engines and data."""


@click.group(cls=LazyGroup, commands_table=CHECK, entry_points="tensortriage.commands.check")
def check() -> None:
    """Check a model for known problems, an engine against itself, or saved results against other limits."""


@click.group(cls=LazyGroup, commands_table=DEBUG, entry_points="tensortriage.commands.debug")
def debug() -> None:
    """Find the cause of a failure by many builds, runs or checks."""
