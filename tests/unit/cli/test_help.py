"""What --help says: examples that the command line takes, and the common options last."""

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from tensortriage.cli import cli
from tensortriage.overview import OPTIONS


def commands(group: click.Group, words: tuple[str, ...] = ()):
    """Yield every command and group with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


COMMANDS = [((), cli), *commands(cli)]
EXAMPLES = [
    pytest.param(re.split(r"\s{3,}|[;|>] ", line)[0], id=f"{' '.join(words) or 'triage'}-{number}")
    for words, command in COMMANDS
    for number, line in enumerate(
        line.strip()
        for line in (command.epilog or "").replace("\\\n", " ").splitlines()
        if line.startswith("  triage ")
    )
]


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_are_understood(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.split(" --check ")[0])[1:] + (["--check", "true"] if " --check " in line else [])
    command, context = cli, click.Context(cli, info_name="triage")
    while isinstance(command, click.Group):
        command = command.get_command(context, words.pop(0))
        assert command is not None, line
    command.make_context(command.name, words, parent=context)


def test_there_are_examples_for_every_command():
    for words, command in COMMANDS:
        shown = not (isinstance(command, click.Group) or command.hidden or words == ("demo",))
        assert not shown or "triage" in (command.epilog or ""), words


def test_the_first_page_lists_the_options_of_the_root():
    shown = [one for one in cli.params if isinstance(one, click.Option) and not one.hidden]
    assert sorted(OPTIONS) == sorted(["-h, --help", *(", ".join(sorted(one.opts, key=len)) for one in shown)])


@pytest.mark.parametrize("words", [words for words, command in COMMANDS if not isinstance(command, click.Group)])
def test_common_options_come_last_and_every_option_is_explained(words):
    text = CliRunner().invoke(cli, [*words, "--help-all"]).output
    headings = re.findall(r"^([A-Z][\w ]+.*):$", text, re.MULTILINE)
    assert [heading for heading in headings if heading not in ("Examples", "Example")][-1] == "Other"
    assert "INTEGER" not in text
    context = click.Context(cli)
    command = cli
    for word in words:
        command = command.get_command(context, word)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, (words, parameter.opts)
