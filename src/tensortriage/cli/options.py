"""Options that several commands share, and the syntax of the guide's command lines.

Polygraphy's options take several values (``--onnx-outputs a b c``) and its runners are flags whose order matters
(``--onnxrt --trt``). Click knows neither, so a command of the guide rewrites its words before click parses them: a
value list becomes a repeated option, a runner flag becomes ``--runner NAME``.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from tensortriage.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

RUNNER_FLAGS = {"--onnxrt": "onnxruntime", "--openvino": "openvino", "--trt": "tensorrt"}
"""Polygraphy-style shorthands, in the order of the command line."""

_NUMBER = re.compile(r"-[\d.]")


class GuideCommand(click.Command):
    """A command that understands the guide's value lists, runner flags and rare options.

    Args:
        value_lists: Long options that take one or more values up to the next option.
    """

    def __init__(self, *args: Any, value_lists: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._value_lists = frozenset(value_lists)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite the words, then let click parse them."""
        return super().parse_args(ctx, rewrite(args, self._value_lists))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options under the headings of their groups, the rare ones only with --help-all."""
        everything = bool(ctx.meta.get("help-all"))
        sections: dict[str, list[tuple[str, str]]] = {}
        hidden = 0
        for parameter in self.get_params(ctx):
            if isinstance(parameter, GroupedOption) and parameter.rare and not everything:
                hidden += 1
                continue
            record = parameter.get_help_record(ctx)
            if record is not None:
                heading = parameter.heading if isinstance(parameter, GroupedOption) else "Other"
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{hidden} rarer options: --help-all")


class GroupedOption(click.Option):
    """An option with a heading in the help; ``rare`` ones are listed by --help-all only."""

    def __init__(self, *args: Any, heading: str = "Other", rare: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading
        self.rare = rare

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert the words; NaN is no number to compare with, and every range lets it through."""
        found = super().type_cast_value(ctx, value)
        if isinstance(found, float) and math.isnan(found):
            raise click.BadParameter("nan is not a number", ctx=ctx, param=self)
        return found


def rewrite(words: Sequence[str], value_lists: frozenset[str]) -> list[str]:
    """Return words in which value lists are repeated options and runner flags are ``--runner`` options."""
    done: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if word == "--":
            return [*done, *words[position - 1 :]]
        if word in RUNNER_FLAGS:
            done += ["--runner", RUNNER_FLAGS[word]]
            continue
        if word not in value_lists:
            done.append(word)
            continue
        start = position
        while position < len(words) and not is_option(words[position]):
            position += 1
        if position == start:
            done.append(word)  # click says that a value is missing
        for value in words[start:position]:
            done += [word, value]
    return done


def is_option(word: str) -> bool:
    """Whether a word starts an option (a negative number does not)."""
    return word.startswith("-") and len(word) > 1 and not _NUMBER.match(word)


def option(*names: str, heading: str, rare: bool = False, **kwargs: Any) -> Callable[[F], F]:
    """Declare an option under a heading of the help."""
    return click.option(*names, cls=GroupedOption, heading=heading, rare=rare, **kwargs)


def show_all(context: click.Context, _: click.Parameter, value: object) -> None:
    """Print the help with the rare options and stop."""
    if value and not context.resilient_parsing:
        context.meta["help-all"] = True
        click.echo(context.get_help())
        context.exit()


def common(function: F) -> F:
    """Add what every command has: --json and --help-all."""
    function = click.option(
        "--help-all",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show_all,
        cls=GroupedOption,
        heading="Other",
        help="Show the rare options too and exit.",
    )(function)
    return option(
        "--json", "as_json", is_flag=True, heading="Other", help="Print one JSON document on stdout, text on stderr."
    )(function)


DATA_LISTS = ("--inputs", "--load-inputs", "--load-input-data", "--val-range", "--input-shapes")


def data_options(function: F) -> F:
    """Add the options that say where feeds come from."""
    heading = "Inputs"
    for add in reversed(
        (
            option(
                "--inputs",
                "--load-inputs",
                "--load-input-data",
                "inputs",
                multiple=True,
                metavar="PATH...",
                heading=heading,
                help="Feeds: npz, directory of npy, ONNX test_data_set, Polygraphy JSON, safetensors.",
            ),
            option(
                "--input-shapes",
                "input_shapes",
                multiple=True,
                metavar="NAME:SHAPE...",
                heading=heading,
                help="Shapes of dynamic inputs for made-up data, e.g. x:[1,3,224,224].",
            ),
            option(
                "--seed", type=int, heading=heading, rare=True, help="Seed of random data, numbers as Polygraphy's."
            ),
            option(
                "--val-range",
                "val_range",
                multiple=True,
                metavar="[NAME:][LOW,HIGH]...",
                heading=heading,
                rare=True,
                help="Range of random data, numbers as Polygraphy's.",
            ),
            option(
                "--iterations",
                "--iters",
                "iterations",
                type=click.IntRange(1),
                heading=heading,
                rare=True,
                help="Number of random feeds, numbers as Polygraphy's.",
            ),
            option(
                "--data-loader-script",
                default="",
                metavar="FILE.py[:FUNCTION]",
                heading=heading,
                rare=True,
                help="Python file whose load_data (or FUNCTION) yields dicts of arrays.",
            ),
        )
    ):
        function = add(function)
    return function


def limit_options(function: F) -> F:
    """Add the options that bound engines."""
    heading = "Limits"
    for add in reversed(
        (
            option(
                "--timeout",
                type=click.FloatRange(0, min_open=True),
                metavar="SECONDS",
                heading=heading,
                help="Longest build or run of an engine in its own process.",
            ),
            option(
                "--memory-limit",
                default="",
                metavar="BYTES",
                heading=heading,
                help="Largest memory of an engine in its own process, e.g. 8G.",
            ),
        )
    ):
        function = add(function)
    return function


def parse_bytes(text: str) -> int | None:
    """Return a byte count: ``512``, ``1.5G``, ``300M``, ``1e9``; None for an empty text.

    Raises:
        UsageError: For anything else.
    """
    if not text:
        return None
    match = re.fullmatch(r"([\d.]+(?:[eE][+-]?\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    try:
        number = float(match[1]) if match else -1.0
    except ValueError:
        number = -1.0
    if match is None or number <= 0:
        raise UsageError(f"'{text}' is not a size in bytes", slug="size-malformed", cure="write e.g. 512M or 8G")
    return int(number * {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[match[2].upper()])
