"""Options that several commands share, and the syntax of the guide's command lines.

Polygraphy's options take several values (``--onnx-outputs a b c``) and its runners are flags whose order matters
(``--onnxrt --trt``). Click knows neither, so a command of the guide rewrites its words before click parses them: a
value list becomes a repeated option, a runner flag becomes ``--runner NAME``.
"""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
from click.core import ParameterSource

from tensortriage.cli.logs.options import LOG_LISTS, begin, given_to, log_parameters
from tensortriage.errors import UsageError
from tensortriage.values.output_files import Place, check_output

F = TypeVar("F", bound=Callable[..., Any])


class Adds(Protocol):
    """What adds options to a function."""

    def __call__(self, function: F, /) -> F:
        """Return the function with more options."""
        ...


RUNNER_FLAGS = {"--onnxrt": "onnxruntime", "--openvino": "openvino", "--trt": "tensorrt", "--pluginref": "reference"}
"""Polygraphy-style shorthands, in the order of the command line."""

OTHER = "Other"
"""Heading of what every command has; it comes last."""

EMPTY_LISTS = ("--tactic-sources", "--preview-features", "--quantization-flags")
"""Lists of TensorRT's that may be empty, which is written ``none``."""

_NUMBER = re.compile(r"-[\d.]")


class GuideCommand(click.Command):
    """A command that understands the guide's value lists, runner flags and rare options.

    Args:
        value_lists: Long options that take one or more values up to the next option.
    """

    def __init__(self, *args: Any, value_lists: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._value_lists = frozenset(value_lists)
        self.params += log_parameters(GroupedOption, heading=OTHER, rare=True)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite the words, let click parse them, then look at the places that are to be written.

        Raises:
            UsageError: As `check_written`, and for an option that Polygraphy has and we do not.
            click.UsageError: For what click does not understand.
        """
        ctx.meta["words"] = list(args)
        try:
            rest = super().parse_args(ctx, rewrite(args, self._value_lists))
            check_written(ctx, self.get_params(ctx))
            check_output(given_to(ctx)["file"], *read_places(ctx, self.get_params(ctx)))
            begin(ctx, args)
        except click.NoSuchOption as error:
            raise _refused(ctx, error) or error from None
        except BaseException:
            ctx.close()  # click closes those of commands that begin; a default may have made a folder by now
            raise
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options under the headings of their groups, the rare ones only with --help-all."""
        everything = bool(ctx.meta.get("help-all"))
        sections: dict[str, list[tuple[str, str]]] = {}
        hidden = 0
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Argument):
                continue  # the text above says what it is
            if isinstance(parameter, GroupedOption) and parameter.rare and not everything:
                hidden += not parameter.hidden
                continue
            record = parameter.get_help_record(ctx)
            if record is not None:
                heading = parameter.heading if isinstance(parameter, GroupedOption) else OTHER
                sections.setdefault(heading, []).append(record)
        for heading in sorted(sections, key=lambda heading: heading == OTHER):
            with formatter.section(heading):
                formatter.write_dl(sections[heading])
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{hidden} rarer option{'s' if hidden > 1 else ''}: --help-all")


def _refused(context: click.Context, error: click.NoSuchOption) -> Exception | None:
    """Return the error for an option that Polygraphy has and we do not."""
    from tensortriage.cli.not_offered import refusal

    return refusal(" ".join(context.command_path.split()[1:]).removeprefix("polygraphy "), error.option_name)


class GroupedOption(click.Option):
    """An option with a heading in the help; ``rare`` ones are listed by --help-all only."""

    def __init__(self, *args: Any, heading: str = OTHER, rare: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading
        self.rare = rare

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert the words; NaN is no number to compare with, and every range lets it through.

        Raises:
            click.BadParameter: For NaN.
        """
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
        if word not in value_lists and word not in LOG_LISTS:
            done.append(word)
            continue
        belongs = LOG_LISTS.get(word, anything)
        start = position
        while position < len(words) and not is_option(words[position]) and belongs(words[position]):
            position += 1
        if position == start:
            done += [word, "none"] if word in EMPTY_LISTS else [word]  # click says that a value is missing
        for value in words[start:position]:
            done += [word, value]
    return done


def anything(_: str) -> bool:
    """Whether a word can be a value of a list that takes any."""
    return True


def is_option(word: str) -> bool:
    """Whether a word starts an option (a negative number does not)."""
    return word.startswith("-") and len(word) > 1 and not _NUMBER.match(word)


def option(*names: str, heading: str, rare: bool = False, **kwargs: Any) -> Adds:
    """Declare an option under a heading of the help."""
    add: Adds = click.option(*names, cls=GroupedOption, heading=heading, rare=rare, **kwargs)
    return add


class Written(click.Path):
    """A place that a command writes; it is looked at before the command begins.

    Args:
        place: What is written there.
        read_too: Whether an input may be written again.
        always: Whether the default is written whatever the other options are.
    """

    def __init__(self, place: Place = Place.FILE, *, read_too: bool = False, always: bool = False) -> None:
        super().__init__(path_type=Path, allow_dash=True)
        self.place = place
        self.read_too = read_too
        self.always = always


WRITTEN_FILE, WRITTEN_FOLDER, WRITTEN = Written(), Written(Place.FOLDER), Written(Place.EITHER)
WRITTEN_CASE = Written(Place.FOLDER, always=True)
READ, READ_WORD = click.Path(path_type=Path), click.Path()
"""Places that are read, as paths or as the words they were given as."""


def check_written(context: click.Context, parameters: Sequence[click.Parameter]) -> None:
    """Look at every place that the options name to be written.

    Raises:
        UsageError: When one cannot be written, or is read by the same command, or is named twice (``output-twice``).
    """
    inputs = read_places(context, parameters)
    seen: dict[Path, str] = {}
    for parameter in parameters:
        if not isinstance(parameter.type, Written):
            continue
        source = context.get_parameter_source(parameter.name or "")
        if source is ParameterSource.DEFAULT and not parameter.type.always:
            continue
        for path in _values(context, parameter):
            if str(path) == "-":
                continue
            check_output(path, *() if parameter.type.read_too else inputs, place=parameter.type.place)
            if path.absolute() in seen:
                raise UsageError(
                    f"{path} would be written both by {seen[path.absolute()]} and by {parameter.opts[0]}",
                    slug="output-twice",
                    cure="name a different place for each",
                )
            seen[path.absolute()] = parameter.opts[0]


def read_places(context: click.Context, parameters: Sequence[click.Parameter]) -> list[Path]:
    """Return every place that the options name to be read."""
    return [
        Path(value)
        for parameter in parameters
        if isinstance(parameter.type, click.Path) and not isinstance(parameter.type, Written)
        for value in _values(context, parameter)
    ]


def _values(context: click.Context, parameter: click.Parameter) -> Sequence[Any]:
    value = context.params.get(parameter.name or "")
    if parameter.multiple or parameter.nargs != 1:
        return value or ()
    return () if value in (None, "") else (value,)


def accepted(*names: str, heading: str, text: str, **kwargs: Any) -> Adds:
    """Declare an option of Polygraphy that changes nothing here; the text says why."""
    given = kwargs if kwargs else {"is_flag": True}
    return option(*names, expose_value=False, heading=heading, rare=True, help=f"Accepted; {text}", **given)


def together(*options: Adds) -> Adds:
    """Return what adds several options, listed in this order."""

    def add(function: F, /) -> F:
        for one in reversed(options):
            function = one(function)
        return function

    return add


def show_all(context: click.Context, _: click.Parameter, value: object) -> None:
    """Print the help with the rare options and stop."""
    if value and not context.resilient_parsing:
        context.meta["help-all"] = True
        click.echo(context.get_help())
        context.exit()


common = together(
    option("--json", "as_json", is_flag=True, heading=OTHER,
           help="Print one JSON document on stdout, text on stderr."),
    option("--help-all", is_flag=True, is_eager=True, expose_value=False, callback=show_all, heading=OTHER,
           help="Show the rare options too and exit."),
)  # fmt: skip
"""What every command has."""

limit_options = together(
    option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", heading="Limits",
           help="Time limit of each build or run of an engine in its own process."),
    option("--memory-limit", default="", metavar="BYTES", heading="Limits",
           help="Memory limit of an engine in its own process, e.g. 8G."),
)  # fmt: skip
"""What bounds engines."""

TOLERANCE_LISTS = ("--atol", "--abs-tol", "--rtol", "--rel-tol")


def reference_option(heading: str, text: str = "Engine taken as right.") -> Adds:
    """Declare the engine that is taken as right."""
    return option("--reference", "-r", default="onnxruntime:optimization=none", show_default=True, metavar="ENGINE",
                  heading=heading, help=text)  # fmt: skip


def tolerance_options(heading: str, text: str) -> Adds:
    """Declare the tolerances of outputs.

    Args:
        heading: Heading in the help.
        text: What the absolute one is, and what holds without any.
    """
    return together(
        option("--atol", "--abs-tol", "atol", multiple=True, metavar="[OUT:]NUMBER...", heading=heading, help=text),
        option("--rtol", "--rel-tol", "rtol", multiple=True, metavar="[OUT:]NUMBER...", heading=heading,
               help="Relative tolerance, of |reference|."),
    )  # fmt: skip


def samples_option(heading: str, default: int, text: str = "Largest number of feeds to run.") -> Adds:
    """Declare how many feeds are used."""
    return option("--samples", type=click.IntRange(1), default=default, show_default=True, metavar="N", heading=heading,
                  help=text)  # fmt: skip


def case_option(*names: str) -> Adds:
    """Declare the directory of the case."""
    return option("--case", *names, "case", type=WRITTEN_CASE, default="triage-case", show_default=True,
                  metavar="DIR", heading="Result",
                  help="Directory of the case; a case that is already there is resumed.")  # fmt: skip


def external_data_option(heading: str, *, rare: bool = True) -> Adds:
    """Declare where the weights outside the model file are."""
    return option("--external-data-dir", "--load-external-data", "--ext", "external_data_dir",
                  type=READ, metavar="DIR", heading=heading, rare=rare,
                  help="Directory of the external data, if they do not lie beside the model.")  # fmt: skip


MODEL_TYPES = ("frozen", "keras", "ckpt", "onnx", "engine", "uff", "trt-network-script", "caffe")


def only_onnx(_: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Refuse another kind of model than ONNX.

    Raises:
        UsageError: With what to do instead (``model-type``).
    """
    cures = {
        "engine": "give the ONNX file, whose names tell what is what, and --target tensorrt:load_engine=FILE",
        "trt-network-script": "wrap your builder in a script engine: --target script:FILE.py:CLASS",
    }
    if value not in (None, "onnx"):
        raise UsageError(
            f"{parameter.opts[0]} {value}: models are ONNX files",
            slug="model-type",
            cure=cures.get(str(value), "convert the model to ONNX"),
        )


def model_type_option(heading: str) -> Adds:
    """Declare the kind of the model file."""
    return option("--model-type", type=click.Choice(MODEL_TYPES), metavar="TYPE", expose_value=False,
                  callback=only_onnx, heading=heading, rare=True,
                  help="Accepted: onnx; other kinds of model are not read.")  # fmt: skip


def own_inference(heading: str) -> Adds:
    """Declare the choice of another shape inference."""
    return accepted("--no-onnxruntime-shape-inference", heading=heading, text="inference is ONNX's own.")


def inference_accepted(heading: str) -> Adds:
    """Declare options of shape inference for commands in which shapes are inferred when they are needed."""
    return together(
        accepted("--shape-inference", "--do-shape-inference", heading=heading,
                 text="shapes are inferred where they are needed."),
        own_inference(heading),
    )  # fmt: skip


DATA_LISTS = ("--inputs", "--load-inputs", "--load-input-data", "--val-range", "--input-shapes")
FEED_FORMATS = "npz, directory of npy, ONNX test_data_set, Polygraphy JSON, safetensors."


def shapes_option(*names: str, heading: str, rare: bool = False) -> Adds:
    """Declare the shapes of dynamic inputs."""
    return option(*names, "input_shapes", multiple=True, metavar="NAME:SHAPE...", heading=heading, rare=rare,
                  help="Shapes of dynamic inputs for made-up data, e.g. x:[1,3,224,224].")  # fmt: skip


def made_up_options(heading: str) -> Adds:
    """Declare how data are made when no file holds them."""
    return together(
        option("--seed", type=int, metavar="N", heading=heading, rare=True,
               help="Seed of random data; the values are those that Polygraphy generates."),
        option("--val-range", "val_range", multiple=True, metavar="[NAME:][LOW,HIGH]...", heading=heading, rare=True,
               help="Range of random data; the values are those that Polygraphy generates."),
        accepted("--data-loader-backend-module", heading=heading, text="numpy only; torch's random numbers differ.",
                 type=click.Choice(["numpy"]), metavar="NAME"),
        option("--iterations", "--iters", "iterations", type=click.IntRange(0), metavar="N", heading=heading, rare=True,
               help="Number of random feeds; the values are those that Polygraphy generates."),
        option("--data-loader-script", default="", metavar="FILE.py[:FUNCTION]", heading=heading, rare=True,
               help="Python file whose load_data (or FUNCTION) yields dicts of arrays."),
    )  # fmt: skip


data_options = together(
    option("--inputs", "--load-inputs", "--load-input-data", "inputs", multiple=True, metavar="PATH...",
           type=READ_WORD,
           heading="Inputs", help=f"Feeds: {FEED_FORMATS}"),
    shapes_option("--input-shapes", heading="Inputs"),
    made_up_options("Inputs"),
)  # fmt: skip
"""What says where feeds come from."""
