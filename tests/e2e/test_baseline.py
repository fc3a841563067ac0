"""``triage baseline`` end to end: from nothing to a check that fails for the right reason, and what it costs again."""

import json
import shutil

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from models import mlp
from running_cli import triage

ENGINE = """
import numpy as np
from tensortriage_testing import FaultyEngine
class Engine(FaultyEngine):
    pass
"""
pytestmark = pytest.mark.lengthy


@pytest.fixture
def repository(tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    for number in range(3):
        mlp(hidden=8 + number).save(models / f"net{number}.onnx")
        np.savez(models / f"net{number}.npz", x=np.random.default_rng(number).normal(size=(1, 4)).astype(np.float32))
    (tmp_path / "engine.py").write_text(ENGINE)
    return tmp_path


def entries(done):
    return {(each["model"], each["target"]): each for each in json.loads(done.stdout)["entries"]}


def whats(entry):
    return [change["what"] for change in entry["changes"]]


def test_from_nothing_to_a_failing_check(repository):
    done = triage("baseline", "save", "models", "--targets", "script:engine.py", cwd=repository)
    assert done.returncode == 0, done.stderr
    assert "3 models, 1 target: 3 saved" in done.stdout
    done = triage("baseline", "check", cwd=repository)
    assert done.returncode == 0, done.stderr
    assert "3 ok" in done.stdout
    assert "3 known from earlier" in done.stdout  # what has been asked is not run again

    engine = repository / "engine.py"
    engine.write_text(ENGINE.replace("    pass", "    from tensortriage_testing import Fault\n"
                                     "    fault = Fault('scale', node='/layer.0/Gemm', amount=1.01)"))  # fmt: skip
    done = triage("baseline", "check", "--json", cwd=repository)
    assert done.returncode == 1, done.stderr
    for entry in entries(done).values():
        assert entry["outcome"] == "changed"
        assert whats(entry) == ["engine", "output", "verdict"]
        assert entry["verdict"]["culprits"][0].endswith("'/layer.0/Gemm'")
        assert (repository / "triage-baseline" / entry["report"]).is_file()


def test_what_changed_is_told_shown_and_accepted(repository):
    words = ("--targets", "onnxruntime")
    assert triage("baseline", "save", "models", *words, cwd=repository).returncode == 0
    kept = sorted((repository / ".triage-baseline").rglob("*.json"))
    assert [path.name for path in kept] == ["net0.onnx.json", "net1.onnx.json", "net2.onnx.json"]
    before = kept[0].read_text()
    document = json.loads(before)
    assert document["format"] == "tensortriage.baseline/1"
    assert list(document) == sorted(document)
    assert len(before) < 4000

    proto = onnx.load(repository / "models" / "net0.onnx")
    weight = proto.graph.initializer[0]
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.01), weight.name))
    onnx.save(proto, repository / "models" / "net0.onnx")
    np.savez(repository / "models" / "net1.npz", x=np.ones((1, 4), np.float32))
    (repository / "models" / "net2.onnx").unlink()
    done = triage("baseline", "update", "--json", cwd=repository)
    assert done.returncode == 1, done.stderr
    found = {model: (entry["outcome"], whats(entry)) for (model, _), entry in entries(done).items()}
    assert found == {
        "models/net0.onnx": ("changed", ["model", "output"]),
        "models/net1.onnx": ("changed", ["data"]),
        "models/net2.onnx": ("gone", []),
    }
    assert kept[0].read_text() == before  # shown only
    done = triage("baseline", "update", "--yes", cwd=repository)
    assert done.returncode == 0, done.stderr
    assert "2 saved, 1 removed" in done.stdout
    assert not kept[2].exists()
    assert triage("baseline", "check", cwd=repository).returncode == 0


def test_a_model_without_a_baseline_and_an_engine_that_is_not_there(repository, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(repository / "nothing"))
    shutil.copytree(repository / "models", repository / "more")
    assert triage("baseline", "save", "models", "--targets", "onnxruntime", cwd=repository).returncode == 0
    done = triage("baseline", "check", ".", cwd=repository)
    assert done.returncode == 1
    assert "NEW      more/net0.onnx on onnxruntime: no baseline" in done.stdout
    done = triage("baseline", "check", ".", "--fail", "output", "verdict", cwd=repository)
    assert done.returncode == 0, done.stdout
    done = triage("baseline", "save", "models/net0.onnx", "--targets", "litert", cwd=repository)
    assert done.returncode == 3
    assert "not run  models/net0.onnx on litert" in done.stdout
