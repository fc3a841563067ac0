"""Options that several commands share, and the syntax of the guide's command lines.

Polygraphy's options take several values (``--onnx-outputs a b c``) and its runners are flags whose order matters
(``--onnxrt --trt``). Click knows neither, so a command of the guide rewrites its words before click parses them: a
value list becomes a repeated option, a runner flag becomes ``--runner NAME``.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tensortriage.cli.logs import begin, given_to, log_parameters
from tensortriage.errors import UsageError
from tensortriage.values.output_files import Place, check_output

RUNNER_FLAGS = {"--onnxrt": "onnxruntime", "--openvino": "openvino", "--trt": "tensorrt", "--pluginref": "float64"}
"""Polygraphy-style shorthands, in the order of the command line."""

OTHER = "Other"
"""Heading of the options that every command has; it comes last."""

EMPTY_LISTS = ("--tactic-sources", "--preview-features", "--quantization-flags")
"""Lists of TensorRT's that may be empty, which is written ``none``."""

CHECK_FLAGS = ("--check", "--check-inference")
_NUMBER = re.compile(r"-[\d.]")


class GuideCommand(click.Command):
    """A command that understands the guide's value lists, runner flags, rare options and ``--check``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        lists = [one for one in self.params if one.multiple and (one.metavar or "").endswith("...")]
        self._value_lists = frozenset(name for one in lists for name in one.opts)
        self.params += log_parameters(GroupedOption, heading=OTHER, rare=True)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite the words, let click parse them, then look at the places that are to be written.

        Raises:
            UsageError: As `check_written`, and for an option that another program or an engine has and we do not.
            click.UsageError: For words that click cannot parse.
        """
        ctx.meta["words"] = list(args)
        if self._value_lists & {*CHECK_FLAGS}:
            args, ctx.meta["check"] = split_check(args)
        check = ctx.meta.get("check")
        try:
            if check == []:
                raise click.UsageError("--check needs a command", ctx)
            rest = super().parse_args(
                ctx, [*(f"{CHECK_FLAGS[0]}={word}" for word in check or ()), *rewrite(args, self._value_lists)]
            )
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
    """Return the error for an option that another program has and we do not, or that is one of an engine."""
    from tensortriage.cli.refusals import of_an_engine, refused

    found: Exception | None = refused(" ".join(context.command_path.split()[1:]), error.option_name)
    if found is None and any("--target" in one.opts for one in context.command.params):
        found = of_an_engine(context.meta["words"], error.option_name)
    return found


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


def split_check(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Return the words without the check, and the words of the check (None when there is none)."""
    for position, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if word == "--":
            break
        if flag not in CHECK_FLAGS:
            continue
        rest = list(words[position + 1 :])
        if equals:
            return [*words[:position], *rest], [value]
        if rest and any(character.isspace() for character in rest[0]) and not Path(rest[0]).exists():
            return [*words[:position], *rest[1:]], rest[:1]
        end = rest.index("--") if "--" in rest else len(rest)
        return [*words[:position], *rest[end + 1 :]], rest[:end]
    return list(words), None


def rewrite(words: Sequence[str], value_lists: frozenset[str]) -> list[str]:
    """Return words with value lists as repeated options, and runner flags as ``--runner`` options."""
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
            done += [word, "none"] if word in EMPTY_LISTS else [word]  # click says that a value is missing
        for value in words[start:position]:
            done += [word, value]
    return done


def is_option(word: str) -> bool:
    """Whether a word starts an option (a negative number does not)."""
    return word.startswith("-") and len(word) > 1 and not _NUMBER.match(word)


class Written(click.Path):
    """A place that a command writes; it is looked at before the command begins.

    Args:
        place: Kind of file or folder that is written there.
        read_too: Whether an input may be written again.
        always: Whether the default is written with any other options.
    """

    def __init__(self, place: Place = Place.FILE, *, read_too: bool = False, always: bool = False) -> None:
        super().__init__(path_type=Path, allow_dash=True)
        self.place = place
        self.read_too = read_too
        self.always = always


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


def accepted_option(*names: str, heading: str, text: str, **kwargs: Any) -> GroupedOption:
    """Return an option of Polygraphy that has no effect here; the text gives the reason."""
    given = kwargs if kwargs else {"is_flag": True}
    return GroupedOption([*names], expose_value=False, heading=heading, rare=True, help=f"Accepted; {text}", **given)


def show_all(context: click.Context, _: click.Parameter, value: object) -> None:
    """Print the help with the rare options and stop."""
    if value and not context.resilient_parsing:
        context.meta["help-all"] = True
        click.echo(context.get_help())
        context.exit()


COMMON = (
    GroupedOption(["--json", "as_json"], is_flag=True, help="Print one JSON document on stdout, text on stderr."),
    GroupedOption(["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show_all,
                  help="Show the rare options too and exit."),
)  # fmt: skip
"""Options of every command."""


MODEL_TYPES = ("frozen", "keras", "ckpt", "onnx", "engine", "uff", "trt-network-script", "caffe")


def only_onnx(_: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Refuse another kind of model than ONNX.

    Raises:
        UsageError: With an alternative (``model-type``).
    """
    cures = {
        "engine": "give the ONNX file, which names the tensors, and --target tensorrt:load_engine=FILE",
        "trt-network-script": "wrap your builder in a script engine: --target script:FILE.py:CLASS",
    }
    if value not in (None, "onnx"):
        raise UsageError(
            f"{parameter.opts[0]} {value}: models are ONNX files",
            slug="model-type",
            cure=cures.get(str(value), "convert the model to ONNX"),
        )


def model_type_option(heading: str) -> GroupedOption:
    """Return the choice of the kind of the model file."""
    return GroupedOption(["--model-type"], type=click.Choice(MODEL_TYPES), metavar="TYPE", expose_value=False,
                         callback=only_onnx, heading=heading, rare=True,
                         help="Accepted: onnx; other kinds of models are not read.")  # fmt: skip


def own_inference(heading: str) -> GroupedOption:
    """Return the option for another shape inference; the context records whether it was given."""
    return accepted_option("--no-onnxruntime-shape-inference", heading=heading, text="inference is ONNX's own.",
                           is_flag=True, callback=_keep)  # fmt: skip


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    context.meta[parameter.opts[0]] = value


def inference_accepted(heading: str) -> list[click.Option]:
    """Return options of shape inference for commands that infer shapes when they need them."""
    text = "shapes are inferred where they are needed."
    inferred = accepted_option("--shape-inference", "--do-shape-inference", heading=heading, text=text)
    return [inferred, own_inference(heading)]
