"""An engine that this Python lacks runs in the environment that was made for it, and the spec says so from then on."""

import pytest

from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineMissing, TriageError
from tensortriage.runs.engine_specs import in_its_environment, usable
from tensortriage.runs.environment_folder import ENVIRONMENT_NOTE, installed_python


@pytest.fixture
def environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "tensortriage" / "engines" / "mnn"
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.write_text("#!/bin/sh\necho this is no worker\n")
    python.chmod(0o755)
    (folder / ENVIRONMENT_NOTE).write_text("{}")
    return folder


def test_an_environment_without_its_note_is_none(environment):
    assert installed_python("mnn") == str(environment / "bin" / "python")
    (environment / ENVIRONMENT_NOTE).unlink()
    assert installed_python("mnn") == ""


def test_its_python_is_asked(environment):
    with pytest.raises(TriageError) as caught:  # it is started, and is none that answers
        usable("mnn:precision=fp32")
    assert str(environment) in f"{caught.value.message} {caught.value.cure}"


def test_without_one_the_command_that_makes_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(EngineMissing) as caught:
        usable("mnn")
    assert caught.value.cure == "triage engines install mnn"


def test_a_provider_has_an_environment_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    spec = EngineSpec.parse("onnxruntime:ep=qnn")
    assert in_its_environment(spec) == spec
    python = tmp_path / "tensortriage" / "engines" / "qnn" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    (python.parents[1] / ENVIRONMENT_NOTE).touch()
    assert in_its_environment(spec).options == {"ep": "qnn", "worker": str(python)}
    plain = EngineSpec.parse("onnxruntime:optimization=none")  # this Python has it
    assert in_its_environment(plain) == plain
