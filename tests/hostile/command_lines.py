"""Command lines: those that look into a model or a data file, and any at all."""

import functools
import random

import click

from hostile.mutation import TEXTS
from tensortriage.cli import cli

RANDOM = ("--seed", "3")
LIGHT = (
    ["inspect", "model", "m.onnx"],
    ["inspect", "model", "m.onnx", "--show", "layers", "attrs", "weights"],
    ["check", "lint", "m.onnx"],
    ["surgeon", "sanitize", "m.onnx", "--fold-constants", "--cleanup", "-o", "o.onnx", "--no-verify"],
    ["convert", "m.onnx", "--precision", "fp16", "-o", "o.onnx", "--no-verify"],
    ["convert", "m.onnx", "--opset", "21", "-o", "o.onnx", "--no-verify"],
    ["run", "m.onnx", "--target", "onnxruntime", *RANDOM],
    ["run", "m.onnx", "--target", "float64", *RANDOM],
)
HEAVY = (
    ["surgeon", "sanitize", "m.onnx", "--fold-constants", "--cleanup", "-o", "o.onnx"],
    ["surgeon", "extract", "m.onnx", "--op-types", "*", "-o", "o.onnx"],
    ["surgeon", "extract", "m.onnx", "--op-types", "Add", "MatMul", "Relu", "--with-inputs", "random", "-o", "o.onnx"],
    ["convert", "m.onnx", "--precision", "bf16", "-o", "o.onnx"],
    ["convert", "m.onnx", "--int8", "-o", "o.onnx"],
    ["inspect", "plan", "m.onnx", "--target", "onnxruntime"],
    ["inspect", "quantizers", "m.onnx", *RANDOM],
    ["run", "m.onnx", "--target", "emulate:precision=fp16", "--onnx-outputs", "mark", "all", *RANDOM],
    ["diagnose", "m.onnx", "--target", "emulate:precision=bf16", "--budget", "10", *RANDOM],
    ["diagnose", "m.onnx", "--target", "onnxruntime", "--budget", "10", *RANDOM],
    ["debug", "reduce", "m.onnx", "--target", "emulate:precision=fp16", "-o", "o.onnx", "--budget", "10", *RANDOM],
    ["debug", "precision", "m.onnx", "--target", "emulate:precision=fp16", "-o", "o.onnx", "--budget", "10", *RANDOM],
)  # fmt: skip
WRITTEN = ("o.onnx", "o.onnx.data", "o_repro", "precision.json", "triage-case", "polygraphy_debug.onnx", "o")
DATA = (
    ["inspect", "data", "DATA"],
    ["inspect", "data", "DATA", "--all", "--show-values", "--histogram"],
    ["data", "convert", "DATA", "-o", "o.npz"],
    ["data", "convert", "DATA", "-o", "o.json", "--model", "m.onnx", "--cast"],
    ["data", "merge", "DATA", "DATA", "-o", "o.safetensors"],
    ["data", "concat", "DATA", "DATA", "-o", "o.store"],
    ["run", "m.onnx", "--target", "onnxruntime", "--inputs", "DATA"],
    ["run", "m.onnx", "--target", "onnxruntime", "--load-outputs", "DATA"],
    ["check", "accuracy", "DATA"],
    ["inspect", "tactics", "DATA"],
)
DATA_WRITTEN = ("o.npz", "o.json", "o.safetensors", "o.store")
COMPATIBLE = tuple(
    ["polygraphy", *words]
    for words in (
        ["run", "m.onnx", "--onnxrt"],
        ["run", "m.onnx", "--onnxrt", "--onnxrt", "--onnx-outputs", "mark", "all", "--validate"],
        ["inspect", "model", "m.onnx", "--show", "layers", "attrs", "weights"],
        ["check", "lint", "m.onnx", "-o", "o.json"],
        ["surgeon", "sanitize", "m.onnx", "--fold-constants", "--cleanup", "-o", "o.onnx"],
        ["surgeon", "extract", "m.onnx", "--inputs", "x:auto:auto", "-o", "o.onnx"],
        ["convert", "m.onnx", "--fp-to-fp16", "-o", "o.onnx"],
        ["debug", "reduce", "m.onnx", "-o", "o.onnx", "--iteration-limit", "3", "--check", "false"],
    )
)
VALUES = (
    "m.onnx", "f.npz", "x:[1,4]", "x", "y:auto", "-1", "0", "1e999", "nan", "3", "onnxruntime", "script:none.py:X",
    "emulate:precision=fp16", "tensorrt:worker=ssh://-x", "mark", "all", "fp16", "[", "x:", ":", "=", "--", "-", "@",
    ".", "/", "²", "9" * 5000, "1e999G", "x:²", "x=" + "9" * 5000,
)  # fmt: skip


def model_command(seed):
    """Return a command that takes the model m.onnx."""
    rng = random.Random(seed)
    words = list(rng.choice(LIGHT if rng.random() < 0.6 else HEAVY))
    return [*words, "--json"] if rng.random() < 0.3 else words


def data_command(seed, path):
    """Return a command that takes a data file."""
    words = random.Random(seed).choice(DATA)
    return [path if word == "DATA" else word for word in words]


@functools.cache
def all_commands():
    """Return every command with its words."""
    return [(words, command) for words, command in _leaves(cli, ()) if words[0] != "polygraphy"]


@functools.cache
def compatible_commands():
    """Return the commands of ``triage polygraphy`` with the words behind that."""
    return [(words[1:], command) for words, command in _leaves(cli, ()) if words[0] == "polygraphy"]


def _leaves(group, prefix):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _leaves(command, (*prefix, name))
        elif name != "demo":
            yield (*prefix, name), command


def any_command(seed, *, compatible=False):
    """Return a command line of known options with values that fit and values that do not.

    Args:
        seed: Which one.
        compatible: Whether it is one of ``triage polygraphy``; those words are left out.
    """
    rng = random.Random(seed)
    words, command = rng.choice(compatible_commands() if compatible else all_commands())
    options = [option for option in command.params if isinstance(option, click.Option)]
    line = [*words, *([] if rng.random() < 0.1 else ["m.onnx"])]
    for option in rng.sample(options, min(len(options), rng.choice([0, 1, 2, 4]))):
        line.append(rng.choice([*option.opts, *option.secondary_opts]))
        if not option.is_flag or rng.random() < 0.1:
            line += [_value(option, rng) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    if rng.random() < 0.1:
        rng.shuffle(line)
    return [word.replace("\0", "") for word in line]


def _value(option, rng):
    choices = getattr(option.type, "choices", ())
    if choices and rng.random() < 0.7:
        return str(rng.choice(list(choices)))
    return rng.choice([rng.choice(VALUES), rng.choice(VALUES), rng.choice(TEXTS)])
