"""The tables of `tensortriage.cli.option_values` are what click hands the commands: the same names, and such values."""

import ast
import inspect
import types
import typing
from pathlib import Path

import click
import pytest

import tensortriage.cli
from tensortriage.cli import cli

PACKAGE = Path(tensortriage.cli.__file__).parent
TREES = {file.relative_to(PACKAGE).as_posix(): ast.parse(file.read_text()) for file in sorted(PACKAGE.rglob("*.py"))}

LINES = [
    [],
    ["--inputs", "a.npz", "b.npz", "--seed", "3", "--iterations", "2", "--val-range", "[0,1]", "x:[1,2]"],
    ["--timeout", "2", "--memory-limit", "1G", "--atol", "1", "y:2", "--rtol", "0", "--samples", "3"],
    ["--budget", "7", "--external-data-dir", ".", "--reference", "reference"],
    ["--save-debug-replay", "s.json", "--load-debug-replay", "l.json", "--check-timeout", "1", "--check", "true"],
    ["--fp16", "--trt-min-shapes", "x:[1]", "y:[2]", "--builder-optimization-level", "3", "--load-tactics", "t.json"],
    ["--calib-base-cls", "IInt8MinMaxCalibrator", "--pool-limit", "workspace:1G", "--save-engine", "e.engine"],
    ["--percentile", "99", "--metric-min", "1", "--sqnr", "3", "--calibrate", "minmax", "--holdout", "h.npz"],
    ["--node-range", "a", "b", "--opset", "17", "--num-passes", "2", "--verify", "--save-external-data", "w.bin"],
    ["--load-outputs", "o.json", "--save-inputs", "i.json", "--save-input-blob", "blobs", "--gen-script", "g.py"],
    ["--save-worst", "worst.npz", "--metric-script", "m.py"],
    ["--include", "one", "two", "--config", "c.yaml", "--exclude-list", "keep.txt", "--warm-up", "2"],
]


def commands(group, words=()):
    """Yield every command below a group by its words, those of ``triage polygraphy`` apart, which are the same."""
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        if isinstance(found, click.Group):
            if name != "polygraphy":
                yield from commands(found, (*words, name))
        else:
            yield " ".join((*words, name)), found


def table_of(function):
    """Return the table of what a command takes as ``**given``, and its other parameters; None without a table."""
    parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
    own = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD}
    (unpacked,) = [one.annotation for one in parameters if one.kind is one.VAR_KEYWORD] or [None]
    return None if unpacked is None else (*typing.get_args(unpacked), own)


COMMANDS = dict(commands(cli))
TABLES = {words: found for words, command in COMMANDS.items() if (found := table_of(command.callback)) is not None}
"""Of each command: the table of its ``**given``, and the parameters of its own."""


def fits(value, kind):
    """Say whether a value is of an annotated type."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return any(fits(value, one) for one in inside)
    if origin is tuple and inside[1] is not Ellipsis:
        return isinstance(value, tuple) and all(fits(*pair) for pair in zip(value, inside, strict=True))
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(item, inside[0]) for item in value)
    return type(value) is kind or (kind is Path and isinstance(value, Path))


def test_the_commands_with_tables_are_found():
    assert {"diagnose", "run", "convert", "surgeon extract", "debug build", "check accuracy"} <= {*TABLES}


def is_command(function):
    return any("command" in ast.unparse(decorator).partition("(")[0] for decorator in function.decorator_list)


@pytest.mark.parametrize("module", TREES)
def test_no_command_and_no_request_takes_options_that_mypy_cannot_check(module):
    functions = [node for node in ast.walk(TREES[module]) if isinstance(node, ast.FunctionDef)]
    arguments = [(each, argument) for each in functions for argument in (*each.args.args, *each.args.kwonlyargs)]
    untyped = [
        f"{function.name}: {argument.arg}"
        for function, argument in arguments
        if argument.annotation is not None and "[str, Any]" in ast.unparse(argument.annotation)
    ]
    untyped += [
        f"{function.name}: **{function.args.kwarg.arg}"
        for function in functions
        if function.args.kwarg is not None
        and (is_command(function) or function.args.kwarg.arg == "given")
        and not ast.unparse(function.args.kwarg.annotation).startswith("Unpack[")
    ]
    assert untyped == []


@pytest.mark.parametrize("words", TABLES)
def test_the_table_names_the_options_of_the_command(words):
    table, own = TABLES[words]
    declared = {parameter.name for parameter in COMMANDS[words].params if parameter.expose_value}
    assert declared - own == set(typing.get_type_hints(table))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0] if line else "nothing")
@pytest.mark.parametrize("words", TABLES)
def test_values_are_of_the_types_in_the_table(words, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.json").write_text("{}")
    command, (table, _) = COMMANDS[words], TABLES[words]
    known = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    given, keep = [], True
    for word in line:
        keep = (
            word in known or (word == "--check" and "check_timeout" in typing.get_type_hints(table))
            if word[:2] == "--"
            else keep
        )
        given += [word] if keep else []
    needed = [
        "m.onnx" if isinstance(parameter, click.Argument) else f"{max(parameter.opts, key=len)}=needed"
        for parameter in command.params
        if parameter.required and not {*parameter.opts} & {*given}
    ]
    context = command.make_context(words, [*needed, *given])
    hints = typing.get_type_hints(table)
    assert {name: context.params[name] for name, kind in hints.items() if not fits(context.params[name], kind)} == {}
