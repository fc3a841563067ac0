"""Commands of other packages: found by their entry points, written with the public names, never in place of ours."""

import json
import sys

import click
import pytest
from click.testing import CliRunner

import tensortriage.cli.run.command
from tensortriage.cli import cli
from tensortriage.errors import UsageError
from tensortriage.overview import GROUP

SOURCE = '''
from pathlib import Path

from tensortriage.sdk import answer, argument, command, count, flag, request

@request
class MineRequest:
    model: Path = argument("MODEL")
    twice: bool = flag("--twice", "Say it twice.")

@command(epilog="Examples:\\n  triage mine model.onnx")
def mine(request: MineRequest, as_json: bool) -> None:
    """Say which model it is."""
    said = [str(request.model)] * (2 if request.twice else 1)
    answer({"format": "mine/1", "said": said}, [count(len(said), "word")], as_json=as_json)

nothing = None
'''


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """Return a function that makes a distribution with an entry point importable."""

    def install(entry, source=SOURCE, group=GROUP):
        (tmp_path / "third_party_command.py").write_text(source)
        info = tmp_path / "third_party-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")

    monkeypatch.syspath_prepend(str(tmp_path))
    yield install
    sys.modules.pop("third_party_command", None)


def test_a_command_of_another_package_is_as_one_of_ours(registered):
    registered("mine = third_party_command:mine")
    done = CliRunner().invoke(cli, ["mine", "--twice", "m.onnx", "--json"])
    assert json.loads(done.stdout) == {"format": "mine/1", "said": ["m.onnx", "m.onnx"]}
    text = CliRunner().invoke(cli, ["mine", "--help"]).output
    assert "Say which model it is." in text
    assert "--twice" in text


def test_a_word_that_is_misspelt_may_mean_it(registered):
    registered("mine = third_party_command:mine")
    assert "did you mean 'mine'?" in str(CliRunner().invoke(cli, ["mien"]).exception)


def test_a_word_of_ours_cannot_be_taken_over(registered):
    registered("run = third_party_command:mine")
    assert cli.get_command(click.Context(cli), "run") is tensortriage.cli.run.command.run
    assert CliRunner().invoke(cli, ["--help"]).output.count("\n  run ") == 1


@pytest.mark.parametrize(
    ("entry", "source"),
    [("mine", "import not_a_module"), ("mine", "1 / 0"), ("mine", "x = 1"), ("nothing", SOURCE)],
)
def test_one_that_cannot_be_loaded_is_told(registered, entry, source):
    registered(f"mine = third_party_command:{entry}", source)
    with pytest.raises(UsageError, match="'mine' cannot be loaded") as raised:
        cli.get_command(click.Context(cli), "mine")
    assert raised.value.slug == "command-broken"


def test_help_lists_them_without_importing_them(registered):
    registered("mine = third_party_command:mine")
    assert "  mine        Say which model it is.\n" in CliRunner().invoke(cli, ["--help"]).output
    assert "third_party_command" not in sys.modules


def test_one_whose_source_is_not_to_be_found_is_listed_with_its_package(registered):
    registered("mine = third_party_command:nothing")
    assert "  mine        From the package third-party.\n" in CliRunner().invoke(cli, ["--help"]).output


def test_a_group_takes_them_too(registered):
    registered("mine = third_party_command:mine", group=f"{GROUP}.engines")
    assert "  mine  " in CliRunner().invoke(cli, ["engines", "--help"]).output
    assert CliRunner().invoke(cli, ["engines", "mine", "m.onnx"]).output == "1 word\n"
