"""The command groups of the guide whose members live in files of their own."""

import click

from tensortriage.cli.lazy import LazyGroup

INSPECT = {
    "model": ("tensortriage.cli.inspect.model:inspect_model", "Operators, interface, parameters, repeated blocks."),
    "plan": ("tensortriage.cli.inspect.plan:inspect_plan", "What an engine really runs for a model."),
    "capability": (
        "tensortriage.cli.inspect.capability:inspect_capability",
        "Which parts of a model an engine can build.",
    ),
    "sparsity": ("tensortriage.cli.inspect.sparsity:inspect_sparsity", "Whether the weights are 2:4 sparse."),
    "quantizers": (
        "tensortriage.cli.inspect.quantizers:inspect_quantizers",
        "Whether Q/DQ pairs fit, and what each costs.",
    ),
    "tactics": ("tensortriage.cli.inspect.tactics:inspect_tactics", "The tactics that a file records."),
    "diff-tactics": (
        "tensortriage.cli.inspect.diff_tactics:inspect_diff_tactics",
        "Tactics of bad builds that good builds lack.",
    ),
    "data": ("tensortriage.cli.inspect.data:inspect_data", "Statistics and values of feeds and saved outputs."),
}
CHECK = {
    "lint": ("tensortriage.cli.check.lint:check_lint", "Find known problems of a model, and where they are."),
    "consistency": (
        "tensortriage.cli.check.consistency:check_consistency",
        "Does an engine contradict itself? No reference needed.",
    ),
    "accuracy": ("tensortriage.cli.check.accuracy:check_accuracy", "Judge saved accuracy results by other limits."),
}

DEBUG = {
    "reduce": ("tensortriage.cli.debug.reduce:debug_reduce", "The smallest piece of a model that still fails."),
    "build": ("tensortriage.cli.debug.build:debug_build", "Build many times: which choice makes a build bad?"),
    "precision": (
        "tensortriage.cli.debug.precision:debug_precision",
        "Find the nodes that need more bits, and write the model.",
    ),
    "repeat": ("tensortriage.cli.debug.repeat:debug_repeat", "How often does a check fail?"),
}
SURGEON = {
    "sanitize": ("tensortriage.cli.surgeon.sanitize:sanitize", "Fold constants, infer shapes, clean up."),
    "extract": ("tensortriage.cli.surgeon.extract:extract", "Cut a part out, with its golden inputs if wanted."),
    "insert": ("tensortriage.cli.surgeon.insert:insert", "Insert one node."),
    "prune": ("tensortriage.cli.surgeon.prune:prune", "Make the weights 2:4 sparse (loses accuracy)."),
    "weight-strip": ("tensortriage.cli.surgeon.weight_strip:weight_strip", "Take the numbers of the weights out."),
    "weight-reconstruct": (
        "tensortriage.cli.surgeon.weight_reconstruct:weight_reconstruct", "Make up numbers for stripped weights.",
    ),
}  # fmt: skip

TEMPLATE = {
    "onnx-gs": ("tensortriage.cli.template:onnx_gs", "A script that edits an ONNX graph."),
    "trt-network": ("tensortriage.cli.template:trt_network", "A script that makes a TensorRT network."),
    "trt-config": ("tensortriage.cli.template:trt_config", "A script that makes a builder configuration."),
}
PLUGIN = {
    "list": ("tensortriage.cli.plugin:list_plugins", "How often the pattern of each plugin matches a model."),
    "match": ("tensortriage.cli.plugin:match", "Write down where the patterns match."),
    "replace": ("tensortriage.cli.plugin:replace", "Put nodes of plugins in those places."),
}


@click.group(cls=LazyGroup, commands_table=PLUGIN)
def plugin() -> None:
    """Find the places in a model that a TensorRT plugin can replace, and put the plugin there."""


@click.group(cls=LazyGroup, commands_table=TEMPLATE)
def template() -> None:
    """Write Python files to start from, for what options cannot express."""


@click.group(cls=LazyGroup, commands_table=SURGEON)
def surgeon() -> None:
    """Edit models; every edit is verified before it is written."""


@click.group(cls=LazyGroup, commands_table=INSPECT)
def inspect() -> None:
    """Look into models, engines and data."""


@click.group(cls=LazyGroup, commands_table=CHECK)
def check() -> None:
    """Check a model for known problems, an engine against itself, or saved results against other limits."""


@click.group(cls=LazyGroup, commands_table=DEBUG)
def debug() -> None:
    """Find the cause of a failure by many builds, runs or checks."""
