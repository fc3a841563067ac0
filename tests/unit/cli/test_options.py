"""The guide's command lines: value lists, runner flags, ``--check``, headings of the help, places that are written."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tensortriage.cli.options import (
    COMMON,
    READ,
    GroupedOption,
    GuideCommand,
    Written,
    accepted_option,
    check_written,
    inference_accepted,
    is_option,
    model_type_option,
    rewrite,
    split_check,
)
from tensortriage.errors import UsageError


@pytest.mark.parametrize(
    ("words", "ours", "check"),
    [
        ("model.onnx -o out.onnx", "model.onnx -o out.onnx", None),
        ("m.onnx --check cmd --load-inputs x -o y", "m.onnx", "cmd --load-inputs x -o y"),
        ("m.onnx --check cmd -x -- -o out.onnx", "m.onnx -o out.onnx", "cmd -x"),
        ("m.onnx --check-inference cmd", "m.onnx", "cmd"),
        ("--check", "", ""),
        ("m.onnx -- --check cmd", "m.onnx -- --check cmd", None),
    ],
)
def test_words_after_check_belong_to_it(words, ours, check):
    expected = None if check is None else check.split()
    assert split_check(words.split()) == (ours.split(), expected)


def test_a_quoted_check_ends_with_its_quotes():
    assert split_check(["m", "--check", "run x | grep y", "-o", "out"]) == (["m", "-o", "out"], ["run x | grep y"])
    assert split_check(["m", "--check=run x", "-o", "out"]) == (["m", "-o", "out"], ["run x"])


def test_a_program_with_a_space_in_its_path_is_no_quoted_check(tmp_path):
    program = tmp_path / "my check.sh"
    program.write_text("")
    assert split_check(["m", "--check", str(program), "-o", "out"]) == (["m"], [str(program), "-o", "out"])


@pytest.mark.parametrize(
    ("words", "rewritten"),
    [
        ("m --outputs a b --json", "m --outputs a --outputs b --json"),
        ("--outputs -1 -.5 -x", "--outputs -1 --outputs -.5 -x"),
        ("m --outputs", "m --outputs"),
        ("--tactic-sources --json", "--tactic-sources none --json"),
        ("m --trt --onnxrt", "m --runner tensorrt --runner onnxruntime"),
        ("--outputs a -- --trt b", "--outputs a -- --trt b"),
    ],
)
def test_value_lists_and_runner_flags_are_rewritten_for_click(words, rewritten):
    assert rewrite(words.split(), frozenset({"--outputs", "--tactic-sources"})) == rewritten.split()


def test_negative_numbers_and_a_dash_start_no_option():
    words = ("--x", "-x", "-", "-1", "-.5", "x")
    assert [word for word in words if is_option(word)] == ["--x", "-x"]


def refused(tmp_path: Path, **given: Path) -> str:
    """Return the slug for a command with an input and two outputs, one of which may be read too."""
    parameters = [
        click.Argument(["model"], type=READ),
        click.Option(["--first"], type=Written()),
        click.Option(["--second"], type=Written(read_too=True)),
    ]
    context = click.Context(click.Command("x", params=parameters))
    context.params = {name: tmp_path / path for name, path in given.items()}
    try:
        check_written(context, parameters)
    except UsageError as error:
        return error.slug
    return ""


def test_inputs_are_not_overwritten_and_outputs_lie_apart(tmp_path):
    for name in ("model", "other"):
        (tmp_path / name).write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "model")
    assert refused(tmp_path, model="model", first="other", second="new") == ""
    assert refused(tmp_path, model="model", first="link") == "output-is-input"
    assert refused(tmp_path, model="model", second="model") == ""
    assert refused(tmp_path, model="model", first="new", second="new") == "output-twice"


def test_devices_are_no_files(tmp_path):
    assert refused(tmp_path, model="model", first=Path("/dev/null")) == "output-is-device"


def command(*parameters):
    """Return a command with these parameters that prints what it is given."""

    def show(**given):
        click.echo(repr(dict(sorted(given.items()))))

    return GuideCommand("x", params=[*parameters, *COMMON], callback=show)


def run(made, *words):
    """Return what click's runner makes of a command line."""
    return CliRunner().invoke(made, [*map(str, words)], standalone_mode=False)


def slug_of(made, *words):
    """Return the slug of the error that a command line ends with."""
    error = run(made, *words).exception
    assert isinstance(error, UsageError), error
    return error.slug


LIST = GroupedOption(["--outputs"], multiple=True, metavar="NAME...", heading="Data", help="Names.")
RARE = GroupedOption(["--odd"], is_flag=True, rare=True, heading="Data", help="Rarely used.")


def test_only_help_all_lists_rare_options_and_what_every_command_has_comes_last():
    made = command(GroupedOption(["--plain"], is_flag=True), LIST, RARE)
    short, long = run(made, "--help").output, run(made, "--help-all").output
    assert "--odd" not in short
    assert "rarer options: --help-all" in short
    assert short.index("--outputs") < short.index("--plain")
    assert "--odd" in long
    assert "rarer" not in long


def test_a_list_takes_words_up_to_the_next_option():
    result = run(command(LIST, RARE), "--outputs", "a", "b", "--odd")
    assert result.output == "{'as_json': False, 'odd': True, 'outputs': ('a', 'b')}\n"


def test_nan_is_no_number():
    made = command(GroupedOption(["--limit"], type=click.FloatRange(0)))
    assert isinstance(run(made, "--limit", "nan").exception, click.BadParameter)
    assert run(made, "--limit", "inf").exception is None


def test_a_check_that_names_no_command_is_refused():
    made = command(GroupedOption(["--check"], multiple=True, metavar="CMD..."))
    assert isinstance(run(made, "--check").exception, click.UsageError)
    assert run(made, "--check", "true", "--json").output == "{'as_json': False, 'check': ('true', '--json')}\n"


def test_an_option_of_polygraphy_that_is_not_offered_is_refused_by_name():
    assert slug_of(command(LIST), "--save-pb") == "option-not-offered"
    assert isinstance(run(command(LIST), "--unheard-of").exception, click.NoSuchOption)


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["--target", "openvino:threads=1", "--precision", "bf16"], "--target openvino:threads=1,precision=..."),
        (["--target=openvino", "--cache-dir", "x"], None),  # no engine has it by that name
        (["--precision", "fp16"], "--target onnxruntime:precision=..."),
    ],
)
def test_an_option_of_an_engine_belongs_into_its_spec(words, cure):
    error = run(command(GroupedOption(["--target", "-t"])), *words).exception
    assert isinstance(error, click.NoSuchOption) if cure is None else error.cure.endswith(cure)
    assert isinstance(run(command(LIST), *words[-2:]).exception, click.NoSuchOption)  # a command without engines


def test_what_is_accepted_changes_nothing_and_is_rare():
    made = command(*inference_accepted("Model"), accepted_option("--backend", heading="Model", text="", metavar="NAME"))
    assert all(one.rare for one in made.params if one.opts[0] in ("--backend", "--shape-inference"))
    result = run(made, "--do-shape-inference", "--no-onnxruntime-shape-inference", "--backend", "numpy")
    assert result.output == "{'as_json': False}\n"


@pytest.mark.parametrize(("kind", "cure"), [("engine", "load_engine=FILE"), ("keras", "ONNX"), ("onnx", "")])
def test_models_are_onnx_files(kind, cure):
    error = run(command(model_type_option("Model")), "--model-type", kind).exception
    assert (error.slug, cure in error.cure) == ("model-type", True) if cure else error is None


def test_a_default_is_looked_at_only_where_it_is_written_whatever_else_is_given(tmp_path):
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "below"
    sometimes, always = (GroupedOption(["--case"], default=place, type=Written(always=each)) for each in (False, True))
    assert run(command(sometimes)).exception is None
    assert slug_of(command(always)) == "output-unwritable"
    assert slug_of(command(sometimes), "--case", place) == "output-unwritable"
    assert run(command(always), "--case", "-").exception is None


def test_a_log_does_not_overwrite_what_is_read(tmp_path):
    (tmp_path / "m.onnx").write_text("")
    made = command(click.Argument(["model"], type=READ))
    assert slug_of(made, tmp_path / "m.onnx", "--log-file", tmp_path / "m.onnx") == "output-is-input"
