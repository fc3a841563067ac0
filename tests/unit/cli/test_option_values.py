"""The tables of `tensortriage.cli.option_values` are what click hands the commands: the same names, and such values."""

import types
import typing
from pathlib import Path

import click
import pytest

from tensortriage.cli import cli
from tensortriage.cli import option_values as tables
from tensortriage.cli.tensorrt_options import tensorrt_flags

TABLES = {
    "diagnose": (tables.DiagnoseValues, {"model", "target", "as_json"}),
    "debug precision": (tables.PrecisionValues, {"model", "as_json"}),
    "debug reduce": (tables.ReduceValues, {"model", "as_json"}),
    "debug build": (tables.BuildValues, {"model", "target", "as_json"}),
    "debug repeat": (tables.RepeatValues, {"as_json"}),
    "check consistency": (tables.ConsistencyValues, {"model", "target", "as_json"}),
    "check lint": (tables.LintValues, {"model", "output", "as_json"}),
    "inspect quantizers": (tables.DataValues, {"model", "original", "samples", "external_data_dir", "as_json"}),
}
"""Of each command: the table of its ``**given``, and the parameters of its own."""

LINES = [
    [],
    ["--inputs", "a.npz", "b.npz", "--seed", "3", "--iterations", "2", "--val-range", "[0,1]", "x:[1,2]"],
    ["--timeout", "2", "--memory-limit", "1G", "--atol", "1", "y:2", "--rtol", "0", "--samples", "3"],
    ["--budget", "7", "--external-data-dir", ".", "--reference", "reference"],
    ["--save-debug-replay", "s.json", "--load-debug-replay", "l.json", "--check-timeout", "1", "--check", "true"],
]


def command(words):
    found = cli
    for word in words.split():
        found = found.get_command(click.Context(found), word)
    return found


def fits(value, kind):
    """Say whether a value is of an annotated type."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return any(fits(value, one) for one in inside)
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(item, inside[0]) for item in value)
    return type(value) is kind or (kind is Path and isinstance(value, Path))


def flags_of_tensorrt():
    @tensorrt_flags
    def function(): ...

    return {parameter.name for parameter in function.__click_params__ if parameter.expose_value}


@pytest.mark.parametrize("words", TABLES)
def test_the_table_names_the_options_of_the_command(words):
    table, own = TABLES[words]
    declared = {parameter.name for parameter in command(words).params if parameter.expose_value} - own
    left_out = flags_of_tensorrt() - set(typing.get_type_hints(table)) if words == "debug build" else set()
    assert declared - left_out == set(typing.get_type_hints(table))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0] if line else "nothing")
@pytest.mark.parametrize("words", TABLES)
def test_values_are_of_the_types_in_the_table(words, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.json").write_text("{}")
    found, (table, own) = command(words), TABLES[words]
    known = {name for parameter in found.params for name in parameter.opts}
    given, keep = [], True
    for word in line:
        keep = (
            word in known or (word == "--check" and "check_timeout" in table.__annotations__)
            if word[:2] == "--"
            else keep
        )
        given += [word] if keep else []
    model = ["m.onnx"] if "model" in own else []
    context = found.make_context(words, [*model, *given])
    hints = typing.get_type_hints(table)
    assert {name: context.params[name] for name, kind in hints.items() if not fits(context.params[name], kind)} == {}
