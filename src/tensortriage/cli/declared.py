"""Makes a command of a function: its parameters, and the fields of the requests among them, declare the options."""

import dataclasses
import enum
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tensortriage.cli import guard
from tensortriage.cli.options import COMMON, READ, READ_WORD, GroupedOption, GuideCommand, Written, accepted_option
from tensortriage.engines.cpu_features import computes_bf16, where_it_runs
from tensortriage.errors import UsageError
from tensortriage.values.given import resolved
from tensortriage.values.options import DECLARED, Option, OptionPart, default_of

READY = {
    "onnxruntime": "onnxruntime",
    "openvino": "openvino:precision=bf16",
    "emulate": "emulate:precision=fp16",
    "tensorrt": "tensorrt:precision=fp16",
}
"""A useful spec of each engine, for the list of ready commands."""
WHERE_MADE = "data_loader_script"
"""The option of synthetic data that is listed next to Polygraphy's choice of a library, which is accepted."""


def command(
    name: str | None = None,
    *,
    epilog: str = "",
    accepted: Sequence[click.Option] = (),
    before: Callable[[Mapping[str, Any]], None] | None = None,
    **settings: Any,
) -> Callable[[Callable[..., object]], click.Command]:
    """Make a command of a function, whose docstring is its help; ``as_json`` is whether --json was given.

    Args:
        name: Command word, if it is not the function's name.
        epilog: Text below the options: examples, exit codes.
        accepted: Options of Polygraphy that change nothing.
        before: Called with the parsed values before the request is made, to import the modules that the request needs.
        **settings: For click.
    """

    def make(function: Callable[..., object]) -> click.Command:
        @functools.wraps(function)
        def callback(**values: Any) -> object:
            if values.get("cluster"):
                guard.about_to(guard.CLUSTER)
            if before is not None:
                before(values)
            return function(**taken(OptionPart(function), values), as_json=values["as_json"])

        params = [*parameters(function), *accepted, *COMMON]
        about = {"help": function.__doc__, "epilog": where_it_runs(epilog), **settings}
        return GuideCommand(name or function.__name__, params=params, callback=callback, **about)

    return make


def parameters(source: Callable[..., Any]) -> list[click.Parameter]:
    """Return click's parameters for a function or a request, each option once, under the latest heading."""
    found: dict[tuple[str, ...], click.Parameter] = {}
    heading = ""
    for option, kind, default in _options(OptionPart(source)):
        heading = option.group or heading
        found.setdefault(option.names or (option.key,), _parameter(option, kind, default, heading))
        if option.key == WHERE_MADE:
            backend = accepted_option("--data-loader-backend-module", heading=heading, metavar="NAME",
                                      type=click.Choice(["numpy"]), text="numpy only; torch's random numbers differ.",
                                      )  # fmt: skip
            found.setdefault(tuple(backend.opts), backend)
    return sorted(found.values(), key=lambda one: isinstance(one, click.Option))


def _fields(part: OptionPart) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, type and declaration of all that is declared by a request, a function or the part itself."""
    source = part.factory
    if isinstance(source, str):
        yield from ((name, str, field) for name, field in part.fields.items())
    elif isinstance(source, type):
        for field in dataclasses.fields(source):
            yield field.name, field.type, part.fields.get(field.name, field)
    else:
        for parameter in inspect.signature(source).parameters.values():
            if isinstance(parameter.default, dataclasses.Field):
                yield parameter.name, parameter.annotation, parameter.default
            elif dataclasses.is_dataclass(kind := parameter.annotation):
                metadata = {DECLARED: OptionPart(typing.cast("type[Any]", kind))}
                yield parameter.name, kind, dataclasses.field(metadata=metadata)


def _options(part: OptionPart) -> Iterator[tuple[Option, Any, Any]]:
    """Yield every option with the type and the default of its field."""
    for name, kind, field in _fields(part):
        declared = field.metadata.get(DECLARED) if isinstance(field, dataclasses.Field) else None
        if isinstance(declared, OptionPart):
            yield from _options(dataclasses.replace(declared, group=declared.group or part.group))
        for one in declared if isinstance(declared, tuple) else ():
            group = one.group or part.group if name in part.fields else part.group or one.group
            yield dataclasses.replace(one, group=group), kind, default_of(field)


def taken(part: OptionPart, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field values of an option group, from the parsed command line."""
    found: dict[str, Any] = {}
    for name, kind, field in _fields(part):
        if not isinstance(field, dataclasses.Field):
            found |= {} if field is None else {name: field}
            continue
        declared = field.metadata.get(DECLARED)
        if isinstance(declared, OptionPart):
            given = taken(declared, values)
            found[name] = resolved(declared.factory)(**given) if declared.factory is kind else declared.make(given)
        elif declared:
            found[name] = _read(declared, values, kind, default_of(field))
    return found


def _read(options: Sequence[Option], values: Mapping[str, Any], kind: Any, default: Any) -> Any:
    """Return the value of a field from the words of its options.

    Raises:
        UsageError: When two options exclude each other (``usage``, or the declared slug), or no engine is named
            (``target-missing``).
    """
    option, word = options[0], values[options[0].key]
    if option.value is not None:
        given = [one for one in options if values[one.key]]
        if len(given) > 1:
            message = f"{given[0].names[0]} and {given[1].names[0]} exclude each other"
            if not option.slug:
                raise click.UsageError(message)
            raise UsageError(message, slug=option.slug, cure="give only one of them")
        value = given[0].value if given else default
        return resolved(option.read)(value) if given and option.read is not None else value
    if word is None or word == () or word == _shown(default):
        if default is dataclasses.MISSING:
            raise target_missing(values["model"])
        return default
    if option.each is not None:
        return tuple(map(resolved(option.each), word))
    if option.read is not None:
        return resolved(option.read)(word)
    return kind_of(kind)(word) if issubclass(kind_of(kind), enum.Enum) else word


def target_missing(model: Path | None) -> UsageError:
    """Return the error for a missing --target, with a ready command for each engine usable here."""
    from tensortriage.engines.registry import availabilities

    ready = READY if computes_bf16() else {**READY, "openvino": "openvino"}
    usable = [name for name, available in availabilities().items() if available.usable and name in READY]
    command = click.get_current_context().command_path
    named = model if model and model != Path() else "MODEL"
    commands = "; ".join(f"{command} {named} --target {ready[name]}" for name in usable)
    return UsageError("no --target: which engine?", slug="target-missing", cure=f"try {commands}")


def kind_of(annotation: Any) -> type:
    """Return the type of one word: the item type of a list, str for values that are parsed from words."""
    if isinstance(annotation, types.UnionType):
        (annotation,) = [one for one in typing.get_args(annotation) if one is not types.NoneType][:1]
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is not None:
        return kind_of(inside[0]) if isinstance(origin, type) and issubclass(origin, Sequence) else str
    known = isinstance(annotation, type) and (annotation in (int, float, Path) or issubclass(annotation, enum.Enum))
    return annotation if known else str


def _parameter(option: Option, kind: Any, default: Any, heading: str) -> click.Parameter:
    shown, key = _shown(default), option.key
    usual = {} if shown is None else {"default": shown}  # None is a default to click, with which nothing is missing
    if not option.names:
        return click.Argument([key], type=_type(option, kind), required=option.needed, metavar=option.metavar,
                              nargs=-1 if option.many else 1, **usual)  # fmt: skip
    about: dict[str, Any] = {"is_flag": True}
    if "/" in option.names[0]:
        about = {"default": None}
    elif option.value is None:
        about = {
            "type": _type(option, kind),
            "metavar": option.metavar or None,
            "required": option.needed,
            "multiple": option.many or typing.get_origin(kind) in (tuple, Sequence),
            "show_default": shown not in (None, ""),
            **usual,
        }
        about |= {} if option.empty is None else {"is_flag": False, "flag_value": option.empty}
        about |= {"nargs": option.words, "type": None} if option.words > 1 else {}
    return GroupedOption([*option.names, key], help=option.help, hidden=option.hidden, heading=heading,
                         rare=option.rare, **about)  # fmt: skip


def _shown(default: Any) -> Any:
    """Return a default as a word of the command line; None where no word gives it."""
    if isinstance(default, enum.Enum):
        return default.value
    return default if isinstance(default, str | int | float | Path) and not isinstance(default, bool) else None


def _type(option: Option, annotation: Any) -> Any:
    kind: Any = kind_of(annotation) if option.read is None else str
    if option.choices or issubclass(kind, enum.Enum):
        return click.Choice(option.choices or [one.value for one in kind])
    if option.writes is not None:
        return Written(option.writes, read_too=option.rewrites, always=option.always)
    if option.reads or kind is Path:
        return READ_WORD if option.reads else READ
    low: Any = option.least if option.above is None else option.above
    high: Any = option.most if option.below is None else option.below
    if low is None and high is None:
        return kind
    made = click.IntRange if kind is int else click.FloatRange
    return made(low, high, min_open=option.above is not None, max_open=option.below is not None)
