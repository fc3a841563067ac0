"""Every option of every command of Polygraphy 0.53.6 parses here, or is refused with what to do instead.

tests/data/polygraphy/options.json lists them, as Polygraphy's own parsers hold them: names, how many values, type,
choices, whether it is required.
"""

import json
import re
import runpy
from pathlib import Path

import click
import pytest

from tensortriage.cli import cli, logs
from tensortriage.cli.options import EMPTY_LISTS
from tensortriage.errors import UsageError
from tensortriage_polygraphy.not_offered import refused_command

ROOT = Path(__file__).resolve().parents[3]
OPTIONS = json.loads((ROOT / "tests/data/polygraphy/options.json").read_text())
MODEL = str(ROOT / "examples/digits_cnn.onnx")
REQUIRED = {
    "surgeon insert": ["--op", "Relu", "--inputs", "x", "--outputs", "y"],
    "debug build": ["--until", "1"],
    "debug repeat": ["--until", "1"],
}
VALUES = {
    "--until": ["2"],
    "--log-file": ["log/x.log"],
    "--show": ["layers", "weights"],
}
TYPES = {"int": "1", "float": "0.5"}
NARROWER = {
    ("--data-loader-backend-module", "torch"): "numbers are made with numpy",
    ("--precision", "float16"): "the higher precision is fp32",
    ("--calibration-base-class", "x"): "the calibrators of TensorRT are known by name",
    **{("--model-type", kind): "models are ONNX files" for kind in
       ("frozen", "keras", "ckpt", "engine", "uff", "trt-network-script", "caffe")},
}  # fmt: skip
"""Values that are refused, each with its reason."""


def find(words):
    """Return our command of these words; None when there is none."""
    found = cli
    for word in words.split():
        found = found.get_command(click.Context(found), word) if isinstance(found, click.Group) else None
        if found is None:
            return None
    return found


def parse(command, words):
    """Parse a command line of ours in this process, as the command itself would."""
    context = click.Context(cli, info_name="triage")
    *groups, last = command.split()
    for word in groups:
        context = click.Context(find(word), info_name=word, parent=context)
    return find(command).make_context(last, words, parent=context)


def lines(name, nargs, kind, choices):
    """Yield the words of an option: one list per choice, else one."""
    values = [[choice] for choice in choices] if choices else [VALUES.get(name) or [TYPES.get(kind, "x")]]
    if nargs == "0":
        yield [name]
    for value in values if nargs != "0" else ():
        yield [name, *(value * 2 if nargs == "+" and len(value) == 1 and name not in VALUES else value)]
    if nargs == "?" or name in EMPTY_LISTS:
        yield [name]


@pytest.mark.parametrize("command", [name for name in OPTIONS if find(name) is not None])
def test_every_option_parses_or_is_refused_with_a_cure(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    front = [] if command in ("debug repeat", "inspect diff-tactics") else [MODEL]
    required = [*REQUIRED.get(command, ())]
    if any(names[-1] == "--output" and needed for names, *_, needed in OPTIONS[command]):
        required += ["-o", "out.onnx"]
    problems = []
    for names, nargs, kind, choices, _ in OPTIONS[command]:
        for name in names if names[0].startswith("-") else ():
            others = [
                word
                for words in zip(required[::2], required[1::2], strict=True)
                if words[0] not in (name, names[0])
                for word in words
            ]
            for words in lines(name, nargs, kind, choices):
                error = refused(command, [*front, *others, *words])
                cured = getattr(error, "slug", "") == "option-not-offered" and error.cure and name in error.message
                if not (error is None or cured or (names[-1], words[-1]) in NARROWER):
                    problems.append(f"{words}: {error}")
    assert not problems


def refused(command, words):
    """Return why a command line of ours is refused; None when it parses."""
    try:
        parse(command, words).close()
    except (UsageError, click.UsageError) as error:
        return error
    finally:
        logs.end()
    return None


@pytest.mark.parametrize("command", OPTIONS)
def test_every_command_exists_or_is_refused_with_a_cure(command):
    if find(command) is None:
        refused = [error for word in command.split() if (error := refused_command(word)) is not None]
        assert refused, command
        assert refused[0].cure


def test_an_option_that_means_nothing_to_polygraphy_either():
    with pytest.raises(click.NoSuchOption):
        parse("run", [MODEL, "--no-such-thing"])


def test_refusals_are_of_options_that_exist():
    from tensortriage_polygraphy.not_offered import _BY_COMMAND, _EVERYWHERE

    theirs = {name for options in OPTIONS.values() for names, *_ in options for name in names}
    assert set(_EVERYWHERE) <= theirs
    assert {name for _, name in _BY_COMMAND} <= theirs
    for command, name in _BY_COMMAND:
        assert name in {option for names, *_ in OPTIONS[command] for option in names}, (command, name)


@pytest.mark.parametrize("command", ["surgeon sanitize", "surgeon extract", "surgeon insert"])
def test_surgery_lacks_nothing_but_the_conversion(command):
    ours = {word for option in find(command).params for word in option.opts}
    theirs = {name for names, *_ in OPTIONS[command] for name in names if name.startswith("-")}
    assert theirs - ours <= {"--fp-to-fp16", "--verbosity", "--log-format", "--silent"}


def test_the_page_of_all_options_is_up_to_date():
    make = runpy.run_path(str(ROOT / "docs/make_polygraphy_options.py"))
    assert make["PAGE"].read_text() == make["page"](), "run docs/make_polygraphy_options.py again"


def test_the_page_for_its_users_knows_every_command():
    page = (ROOT / "docs/coming-from-polygraphy.md").read_text()
    for command in OPTIONS:
        assert re.search(rf"`{command}`|`{command.split()[0]}`", page), command
