"""Options as they are declared: what a command gets is of the types that its fields say, and what is named exists."""

import collections
import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tensortriage.cli import cli
from tensortriage.cli.declared import command, taken
from tensortriage.values.given import resolved
from tensortriage.values.options import DECLARED, OptionPart, argument, flag, flags, option, part, request

LINES = [
    [],
    ["--inputs", "a.npz", "b.npz", "--seed", "3", "--iterations", "2", "--val-range", "[0,1]", "x:[1,2]"],
    ["--timeout", "2", "--memory-limit", "1G", "--atol", "1", "y:2", "--rtol", "0", "--samples", "3"],
    ["--budget", "7", "--external-data-dir", ".", "--reference", "reference", "--cluster", "local:2"],
    ["--save-debug-replay", "s.json", "--load-debug-replay", "l.json", "--check-timeout", "1", "--check", "true"],
    ["--fp16", "--trt-min-shapes", "x:[1]", "y:[2]", "--builder-optimization-level", "3", "--load-tactics", "t.json"],
    ["--calib-base-cls", "IInt8MinMaxCalibrator", "--pool-limit", "workspace:1G", "--save-engine", "e.engine"],
    ["--percentile", "99", "--metric-min", "1", "--sqnr", "3", "--calibrate", "minmax", "--holdout", "h.npz"],
    [
        "--node-range",
        "a",
        "b",
        "--opset",
        "17",
        "--fold-constants",
        "--num-passes",
        "2",
        "--save-external-data",
        "w.bin",
    ],
    ["--load-outputs", "o.json", "--save-inputs", "i.json", "--save-input-blob", "blobs"],
    ["--warm-up", "2"],
]
NEEDED = {"--target": "onnxruntime", "--min-good": "good.onnx"}
"""What a request needs that its command line does not."""


SAID_OTHERWISE = {("surgeon extract", "--inputs"), ("debug precision", "--percentile")}
"""Lines whose words mean something else to a command."""


def commands(group, words=()):
    """Yield every command below a group by its words, those of ``triage polygraphy`` apart, which are the same."""
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        if isinstance(found, click.Group):
            if name != "polygraphy":
                yield from commands(found, (*words, name))
        else:
            yield " ".join((*words, name)), found


COMMANDS = dict(commands(cli))


def fits(value, kind):
    """Say whether a value is of an annotated type; what is quoted is not looked at."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, str | typing.ForwardRef | typing.TypeVar) or origin in (Mapping, dict, frozenset):
        return True
    if getattr(kind, "_is_protocol", False):
        return True
    if origin is types.UnionType:
        return any(fits(value, one) for one in inside)
    if origin in (tuple, Sequence):
        return isinstance(value, tuple) and all(fits(item, inside[0]) for item in value)
    return isinstance(value, kind) and (kind is not int or not isinstance(value, bool))


def misfits(value, path=""):
    """Yield the fields of a request, and of what is in it, that hold something of another type."""
    for field in dataclasses.fields(value):
        found = getattr(value, field.name)
        if not fits(found, field.type):
            yield f"{path}{field.name}: {found!r}"
        elif dataclasses.is_dataclass(found):
            yield from misfits(found, f"{path}{field.name}.")


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0] if line else "nothing")
@pytest.mark.parametrize("words", COMMANDS)
def test_what_a_command_gets_is_of_the_types_of_its_fields(words, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.json").write_text("{}")
    (tmp_path / "keep.txt").write_text("")
    made = COMMANDS[words]
    known = {name for parameter in made.params for name in parameter.opts if name.startswith("--")}
    given, keep = [], True
    for word in line if (words, *line[:1]) not in SAID_OTHERWISE else ():
        keep = word in known if word[:2] == "--" else keep
        given += [word] if keep else []
    asked = "--check" in given
    needed = [
        "m.onnx" if isinstance(parameter, click.Argument) else f"{max(parameter.opts, key=len)}=needed"
        for parameter in made.params
        if parameter.required and not {*parameter.opts} & {*given}
    ]
    needed += [f"{name}={value}" for name, value in NEEDED.items() if name in known and not (asked and "tar" in name)]
    context = made.make_context(words, [*needed, *given])
    with context:
        found = taken(OptionPart(inspect.unwrap(made.callback)), context.params)
    annotations = inspect.get_annotations(inspect.unwrap(made.callback))
    assert [name for name, value in found.items() if not fits(value, annotations[name])] == []
    assert [text for value in found.values() if dataclasses.is_dataclass(value) for text in misfits(value)] == []


def declarations(source, seen=()):
    """Yield every option and every part of a request or a function."""
    metadata = [
        *(field.metadata for field in (dataclasses.fields(source) if isinstance(source, type) else ())),
        *(
            one.default.metadata
            for one in (() if isinstance(source, type) else inspect.signature(source).parameters.values())
            if isinstance(one.default, dataclasses.Field)
        ),
    ]
    parts = [OptionPart(one) for one in inspect.get_annotations(source).values() if dataclasses.is_dataclass(one)]
    for declared in [*(each.get(DECLARED) for each in metadata), *parts]:
        if isinstance(declared, OptionPart):
            yield declared
            yield from declarations(declared.factory) if not isinstance(declared.factory, str) else ()
            for field in declared.fields.values():
                yield from (
                    (field.metadata[DECLARED] if isinstance(field, dataclasses.Field) else ())
                    if not (isinstance(field, dataclasses.Field) and isinstance(field.metadata[DECLARED], OptionPart))
                    else (field.metadata[DECLARED],)
                )
        else:
            yield from declared or ()


@pytest.mark.parametrize("words", COMMANDS)
def test_what_is_named_to_be_imported_when_it_is_used_exists(words):
    for declared in declarations(inspect.unwrap(COMMANDS[words].callback)):
        named = [declared.factory] if isinstance(declared, OptionPart) else [declared.read, declared.each]
        assert all(callable(resolved(name)) for name in named if name is not None)
        if isinstance(declared, OptionPart) and isinstance(declared.factory, str):
            fields = {field.name for field in dataclasses.fields(resolved(declared.factory))}
            assert set(declared.fields) <= fields


class Way(enum.Enum):
    ONE = "one"
    TWO = "two"


@request
class Inner:
    """A part with an option that the whole has too."""

    seconds: float | None = option("--timeout", "SECONDS", "Time.", default=None, above=0, group="Limits")
    level: int = option("--level", "N", "Level.", default=3, least=0)


@request
class Whole:
    """A request with each kind of field."""

    model: Path = argument("MODEL")
    way: Way = option("--way", "", "Which way.", default=Way.ONE, group="Search")
    names: tuple[str, ...] = option("--names", "NAME...", "Names.", default=())
    sizes: dict[str, int] = option("--sizes", "N...", "Sizes.", default_factory=dict, read=collections.Counter)
    proof: bool = flag("--no-proof", "Prove nothing.", default=True, rare=True)
    end: str = flags(("--first", "first", "Cut there."), ("--last", "last", "Or there."), default="both")
    inner: Inner = part(factory=Inner, level=option("--depth", "N", "Depth.", default=5))
    again: Inner = part(factory=Inner, group="Other one", level=7)
    alone: int = 1


def run(*words):
    """Return the request that a command line makes, and the command's help."""
    found = []

    def fill(wanted: Whole, as_json: bool) -> None:
        """Do it."""
        found.append(wanted)

    made = command(epilog="")(fill)
    result = CliRunner().invoke(made, [*words], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found[0], CliRunner().invoke(made, ["--help"]).output


def test_a_request_is_made_of_its_declarations():
    assert run("m.onnx")[0] == Whole(model=Path("m.onnx"))
    words = ["m.onnx", "--way", "two", "--names", "a", "b", "--no-proof", "--sizes", "1", "2"]
    words += ["--last", "--timeout", "2", "--depth", "4", "--json"]
    made = run(*words)[0]
    assert made == Whole(
        model=Path("m.onnx"), way=Way.TWO, names=("a", "b"), sizes={"1": 1, "2": 1}, proof=False, end="last",
        inner=Inner(seconds=2.0, level=4), again=Inner(seconds=2.0, level=7),
    )  # fmt: skip


def test_the_same_default_in_python_and_on_the_command_line():
    assert Whole(model=Path()).inner == Inner(level=5)
    assert Whole(model=Path()).again == Inner(level=7)


def test_flags_of_one_field_exclude_each_other():
    with pytest.raises(click.UsageError, match="--first and --last exclude each other"):
        run("m.onnx", "--first", "--last")


def test_help_has_an_option_once_below_the_heading_of_the_one_before():
    text = run("m.onnx")[1]
    assert text.count("--timeout") == 1
    assert text.index("Search:") < text.index("--names") < text.index("Limits:") < text.index("--depth")
    assert "--no-proof" not in text
    assert "[default: one]" in text


@pytest.mark.parametrize(
    "words", [words for words, made in COMMANDS.items() if any(one.required for one in made.params)]
)
def test_what_is_needed_is_missed(words):
    with pytest.raises(click.MissingParameter):
        COMMANDS[words].make_context(words, [])
