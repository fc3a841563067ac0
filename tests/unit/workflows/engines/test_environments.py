"""Environments are made from PyPI when asked for; here without it: pip is a script that says what it was asked."""

import subprocess
from pathlib import Path

import pytest

from tensortriage.engines.base import Availability
from tensortriage.errors import EngineMissing, UsageError
from tensortriage.values.serial import dump
from tensortriage.workflows.engines import environments
from tensortriage.workflows.engines.environments import NOTE, Environment, install, list_engines
from tensortriage.workflows.engines.recipes import RECIPES


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "tensortriage" / "engines"


@pytest.fixture
def calls(monkeypatch):
    """Every process that would be started; ``venv`` makes its folder, ``pip`` fails for version 0."""
    made = []

    def run(words, **_):
        made.append(words)
        if "venv" in words:
            python = Path(words[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.write_text("")
            (Path(words[-1]) / "pyvenv.cfg").write_text("")
        failed = "openvino==0" in words
        return subprocess.CompletedProcess(words, int(failed), "2026.4.1\n", "no such version\n" if failed else "")

    monkeypatch.setattr(environments.subprocess, "run", run)
    monkeypatch.setattr(environments, "create", lambda spec: object())
    return made


def test_an_environment_is_pinned_and_made_once(data, calls):
    made = install("openvino")
    assert calls[1][-len(RECIPES["openvino"].requirements) :] == [*RECIPES["openvino"].requirements]
    assert made.target == f"openvino:worker={data / 'openvino' / 'bin' / 'python'}"
    count = len(calls)
    assert install("openvino") == made
    assert len(calls) == count


def test_another_version_is_an_environment_of_its_own(data, calls):
    install("openvino")
    install("openvino==2024.0.0")
    assert sorted(path.parent.name for path in data.glob(f"*/{NOTE}")) == ["openvino", "openvino-2024.0.0"]


def test_what_pip_refuses_leaves_nothing(data, calls):
    with pytest.raises(EngineMissing, match="no such version") as caught:
        install("openvino==0")
    assert caught.value.slug == "environment-failed"
    assert list(data.iterdir()) == []


@pytest.mark.parametrize(
    ("word", "slug"),
    [
        ("litert", "environment-unknown"),
        ("openvino==../../..", "environment-version"),
        ("openvino==1 --index-url=x", "environment-version"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(data, calls, word, slug):
    with pytest.raises(UsageError) as caught:
        install(word)
    assert caught.value.slug == slug
    assert calls == []


def test_a_folder_that_is_no_environment_is_left_alone(data, calls):
    (data / "openvino").mkdir(parents=True)
    (data / "openvino" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError) as caught:
        install("openvino")
    assert caught.value.slug == "environment-foreign"
    assert (data / "openvino" / "mine.txt").read_text() == "mine"


def test_every_engine_is_listed_with_the_command_that_makes_it_usable(data, monkeypatch):
    known = {
        "onnxruntime": Availability(usable=True, version="1.2"),
        "openvino": Availability(usable=False, reason="not installed", cure="pip install openvino"),
        "tensorrt": Availability(usable=False, reason="no driver", cure="run on a machine with one"),
    }
    monkeypatch.setattr(environments, "availabilities", lambda: known)
    commands = {row.name: row.command for row in list_engines().engines}
    assert commands == {
        "onnxruntime": "",
        "openvino": "triage engines install openvino",
        "tensorrt": "run on a machine with one",
        "qnn": "triage engines install qnn",
    }
    (data / "openvino").mkdir(parents=True)
    dump(Environment("openvino", "openvino", "/there/bin/python", ("openvino==1",), "1"), data / "openvino" / NOTE)
    rows = {row.name: row for row in list_engines().engines}
    assert rows["openvino"].command == "--target openvino:worker=/there/bin/python"
    assert rows["openvino"].environments[0].version == "1"


def test_a_note_of_another_kind_is_no_environment(data):
    (data / "openvino").mkdir(parents=True)
    (data / "openvino" / NOTE).write_text("{}")
    assert environments.environments() == ()


def test_every_requirement_of_a_recipe_is_pinned():
    assert [r for recipe in RECIPES.values() for r in recipe.requirements if "==" not in r] == []


def test_a_provider_has_an_environment_that_its_engine_uses(data, calls):
    made = install("qnn")
    assert made.target == f"onnxruntime:ep=qnn,worker={data / 'qnn' / 'bin' / 'python'}"
    assert install("qnn==2.6.0").requirements[0] == "onnxruntime-qnn==2.6.0"
