"""The command groups of the guide whose members live in files of their own."""

import click

from tensortriage.cli.lazy import LazyGroup

INSPECT = {
    "model": ("tensortriage.cli.inspect_model:inspect_model", "Operators, interface, parameters, repeated blocks."),
    "plan": ("tensortriage.cli.inspect_plan:inspect_plan", "What an engine really runs for a model."),
    "capability": ("tensortriage.cli.inspect_capability:inspect_capability", "What of a model an engine can build."),
    "sparsity": ("tensortriage.cli.inspect_sparsity:inspect_sparsity", "Whether the weights are 2:4 sparse."),
    "data": ("tensortriage.cli.inspect_data:inspect_data", "Statistics and values of feeds and saved outputs."),
}
CHECK = {
    "lint": ("tensortriage.cli.check_lint:check_lint", "What is known to go wrong with a model, and where."),
    "accuracy": ("tensortriage.cli.check_accuracy:check_accuracy", "Judge saved accuracy results by other limits."),
}

DEBUG = {
    "reduce": ("tensortriage.cli.debug_reduce:debug_reduce", "The smallest piece of a model that still fails."),
    "repeat": ("tensortriage.cli.debug_repeat:debug_repeat", "How often does a check fail?"),
}


@click.group(cls=LazyGroup, commands_table=INSPECT)
def inspect() -> None:
    """Look into models, engines and data."""


@click.group(cls=LazyGroup, commands_table=CHECK)
def check() -> None:
    """Judge models, and saved results again."""


@click.group(cls=LazyGroup, commands_table=DEBUG)
def debug() -> None:
    """Find the cause of a failure by asking again and again."""
