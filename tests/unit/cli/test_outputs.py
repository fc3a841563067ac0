"""Places that a command is to write are looked at before anything is read or run, whatever the command."""

import tempfile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tensortriage.cli import cli, exit_code_of
from tensortriage.cli.options import Written
from tensortriage.errors import UsageError
from tensortriage.values.output_files import Place


def commands(group: click.Group, words: tuple[str, ...] = ()):
    """Yield every command with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


WRITING = [
    pytest.param(words, command, parameter, id=f"{' '.join(words)} {parameter.opts[0]}")
    for words, command in commands(cli)
    for parameter in command.params
    if isinstance(parameter.type, Written)
]


def slug_of(words: tuple[str, ...], command: click.Command, parameter: click.Parameter, path: Path) -> str:
    """Return the slug with which a command refuses to write somewhere."""
    needed = [
        word
        for other in command.params
        if other.required and other is not parameter
        for word in ([] if isinstance(other, click.Argument) else [other.opts[0]])
        + ["x.npz" if isinstance(other.type, Written) else "missing"] * (other.nargs if other.nargs > 0 else 1)
    ]
    result = CliRunner().invoke(cli, [*words, *needed, parameter.opts[0], str(path)], standalone_mode=False)
    assert isinstance(result.exception, UsageError), (words, result.exception, result.output)
    return result.exception.slug


def test_options_that_name_what_is_written_say_so():
    """A new option that writes is checked like the others when it is declared as `Written`."""
    wanted = ("--save-", "--output", "--case")
    others = {"--save-external-data", "--outputs-by-type"}  # a path relative to --output; names of operators
    for words, command in commands(cli):
        for parameter in command.params:
            name = parameter.opts[0]
            if name.startswith(wanted) and name not in others and "--outputs" not in parameter.opts:
                assert isinstance(parameter.type, Written), (words, name)


@pytest.mark.parametrize(("words", "command", "parameter"), WRITING)
def test_a_place_below_a_file_is_refused_at_once(words, command, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert slug_of(words, command, parameter, tmp_path / "file" / "inner" / "x.npz") == "output-unwritable"
    if parameter.type.place is Place.FOLDER:
        assert slug_of(words, command, parameter, tmp_path / "file") == "output-not-a-directory"
    if parameter.type.place is Place.FILE:
        assert slug_of(words, command, parameter, tmp_path) == "output-is-directory"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize("command", ["reduce", "precision", "build"])
def test_a_refused_command_line_leaves_no_temporary_case(tmp_path, monkeypatch, command):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    model = tmp_path / "m.onnx"
    model.touch()
    with pytest.raises(UsageError) as found:
        exit_code_of(["polygraphy", "debug", command, str(model), "-o", str(model), "--check", "true"])
    assert found.value.slug == "output-is-input"
    assert list((tmp_path / "temporary").iterdir()) == []
