"""Every command line that a cure, a suggestion or a help text names is one: the command is there and has the options.

Of a suggestion made in an f-string what is filled in is left out; whole examples of help texts are parsed as they are.
"""

import ast
import re
from pathlib import Path

import click
import pytest

import tensortriage
import tensortriage_engines
import tensortriage_fleet
import tensortriage_quantize
from diagnosing import parse
from tensortriage.cli import cli

PACKAGES = (tensortriage, tensortriage_fleet, tensortriage_engines, tensortriage_quantize)
FILES = [path for package in PACKAGES for path in sorted(Path(package.__file__).parent.rglob("*.py"))]
ERRORS = Path(__file__).resolve().parents[3] / "docs" / "errors.md"
NAMED = re.compile(r"\btriage ((?:[a-z][a-z-]* ?)+)([^;|]*)")
NAMES = re.compile(r"\btriage\b(?!\.)|triage_command|command_without_inputs")
"""What a source has that names a command."""
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z0-9-]*")
EXAMPLE = re.compile(r"^\s+(triage .*)$", re.MULTILINE)
BEHIND = re.compile(r"\s{2,}|;| > ")
"""What ends an example: a remark behind it, a second command, or a file for its output."""
FILLED = "X"
SENTENCES = ("does", "in", "is", "made", "wrote")
"""What follows in sentences about the program."""


def command_of(words):
    """Return the command that words begin with, and how many they are; None where they begin with none."""
    found, context = cli, click.Context(cli, info_name="triage")
    for place, word in enumerate(words):
        if not isinstance(found, click.Group):
            return found, place
        inner = found.get_command(context, word)
        if inner is None:
            return (found, place) if place else None
        found, context = inner, click.Context(inner, info_name=word, parent=context)
    return found, len(words)


def options_of(command):
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


def wrong_in(text):
    """Yield what a text names that is no command or no option of it."""
    for match in NAMED.finditer(text):
        words = match[1].split()
        found = command_of(words)
        if found is None:
            if words[0] not in SENTENCES:
                yield f"no command '{words[0]}': {match[0]}"
            continue
        command, _ = found
        rest = match[2].split("triage ")[0].split(" --check ")[0]
        unknown = set(OPTION.findall(rest)) - options_of(command) - {"--"}
        if unknown:
            yield f"{command.name} has no {', '.join(sorted(unknown))}: {match[0]}"


def texts_of(tree):
    """Yield the strings of source with what is filled in as a word."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else FILLED for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def word_lists(tree):
    """Yield the words of command lines that are put together, as by ``triage_command(question, "run", ...)``."""
    for node in ast.walk(tree):
        parts = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("triage_command", "command_without_inputs"):
            parts = node.args[1:]
        elif isinstance(node, ast.List) and node.elts and getattr(node.elts[0], "value", "") == "triage":
            parts = node.elts[1:]
        words = [part.value if isinstance(part, ast.Constant) else FILLED for part in parts]
        if words and words[0] != FILLED:
            yield " ".join(map(str, words))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_what_sources_name_exists(package):
    place = Path(package.__file__).parent
    wrong = []
    for path in (path for path in FILES if path.is_relative_to(place) and "testing" not in path.parts):
        text = path.read_text()
        if not NAMES.search(text):
            continue
        tree = ast.parse(text)
        texts = [*texts_of(tree), *(f"triage {words}" for words in word_lists(tree))]
        wrong += [f"{path.relative_to(place)}: {each}" for text in texts for each in wrong_in(text)]
    assert wrong == []


def test_what_the_page_of_errors_names_exists():
    assert [each for line in ERRORS.read_text().splitlines() for each in wrong_in(line.replace("`", " ; "))] == []
    for row in ERRORS.read_text().splitlines():
        for named in re.findall(r"`(triage [^`]*)`", row):
            assert [*wrong_in(named)] == [], row


def leaves(group, context):
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = click.Context(command, info_name=name, parent=context)
        yield from leaves(command, inner) if isinstance(command, click.Group) else [(inner.command_path, command)]


LEAVES = [*leaves(cli, click.Context(cli, info_name="triage"))]


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=[path for path, _ in LEAVES])
def test_examples_of_help_texts_are_parsed_by_their_commands(path, command):
    for text in (command.epilog or "", command.help or ""):
        for example in EXAMPLE.findall(re.sub(r"\s*\\\n\s*", " ", text)):
            parse(BEHIND.split(example)[0])


def test_a_wrong_option_and_a_wrong_command_are_seen():
    assert [*wrong_in("give triage data --runner NAME FILE")] == [
        "data has no --runner: triage data --runner NAME FILE"
    ]
    assert [*wrong_in("triage data merge --no-such A; then")] == [
        "merge has no --no-such: triage data merge --no-such A"
    ]
    assert [*wrong_in("triage nonsense FILE")] == ["no command 'nonsense': triage nonsense FILE"]
    with pytest.raises(click.UsageError):
        parse("triage run m.onnx --no-such")
