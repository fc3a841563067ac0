"""Engines and timings that are kept: the same build is taken again, another one is not, and nothing stale is used."""

import dataclasses

import numpy as np
import pytest

from models import write
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import BuildFailed
from tensortriage.model.model import Model
from tensortriage.runs.observation.runner import Runner
from tensortriage.runs.workspace import Workspace
from tensortriage_engines.tensorrt import engine as tensorrt
from tensortriage_engines.tensorrt.engine import TensorRtEngine
from tensortriage_engines.tensorrt.engine_cache import Shelf

MODEL = """
<ir_version: 8, opset_import: ["" : 13]>
net (float[2] x) => (float[2] y) { [act] y = Relu (x) }
"""
FEATURES = {"weak": ["fp16"], "device": "GPU", "version": "8.5", "compute": "9.0", "driver": "13.0"}


@dataclasses.dataclass
class Session:
    """What the worker gives back."""

    words: dict
    number: int

    def __post_init__(self):
        loaded = "load_engine" in self.words
        self.info = {"trtexec": "trtexec", "built": not loaded, "pid": self.number}
        self.closed = False

    def answer(self, question, **_):
        return {}, {question: np.frombuffer(f"{question} {self.number}".encode(), np.uint8)}

    def run(self, feed):
        return dict(feed)

    def tactics(self):
        return ()

    def plan(self):
        return None

    def allow(self, seconds):
        pass

    def close(self):
        self.closed = True


@pytest.fixture
def builds(monkeypatch):
    """Every compile that reached the worker, as its words; engines are refused when ``refuse`` is set."""
    made: list[dict] = []

    class Isolated:
        refuse = False

        def __init__(self, *_, **__):
            pass

        def probe(self, words):
            return FEATURES

        def compile(self, path, words, **_):
            made.append(dict(words))
            if "load_engine" in words and Isolated.refuse:
                raise BuildFailed("not for this driver", slug="build-failed")
            return Session(dict(words), len(made))

    monkeypatch.setattr(tensorrt, "IsolatedEngine", Isolated)
    monkeypatch.setattr(tensorrt, "_PROBED", {})
    made_by = Isolated
    return made, made_by


@pytest.fixture
def model(tmp_path):
    return write(tmp_path / "model.onnx", MODEL)


def compiled(model, folder, *, engines=True, **options):
    engine = TensorRtEngine()
    engine.keep_in(folder, engines=engines)
    return engine.compile(model, options)


def test_the_same_build_is_taken_from_the_folder(builds, model, tmp_path):
    made, _ = builds
    first = compiled(model, tmp_path / "kept", precision="fp16")
    second = compiled(model, tmp_path / "kept", precision="fp16")
    assert [("load_engine" in words) for words in made] == [False, True]
    with open(made[1]["load_engine"], "rb") as file:
        assert file.read() == b"engine 1"
    assert (first.info["built"], second.info["built"], second.info["trtexec"]) == (True, False, "trtexec")


def test_other_options_or_another_model_are_other_builds_that_share_the_timings(builds, model, tmp_path):
    made, _ = builds
    compiled(model, tmp_path / "kept", precision="fp16")
    compiled(model, tmp_path / "kept", precision="fp32")
    compiled(write(tmp_path / "other.onnx", MODEL.replace("Relu", "Exp")), tmp_path / "kept", precision="fp16")
    assert not any("load_engine" in words for words in made)
    assert made[0]["timing_cache"] == ""
    for words in made[1:]:
        with open(words["timing_cache"], "rb") as file:
            assert file.read() == b"timing_cache 3"  # of the last build
        assert words["timing_cache_optional"] == "true"


def test_candidates_share_timings_and_are_not_kept_themselves(builds, model, tmp_path):
    made, _ = builds
    for _ in range(2):
        compiled(model, tmp_path / "kept", engines=False)
    assert not any("load_engine" in words for words in made)
    assert made[1]["timing_cache"]
    assert [path.suffix for path in (tmp_path / "kept").iterdir()] == [".timings"]


def test_an_engine_that_is_not_taken_any_more_is_built_again(builds, model, tmp_path):
    made, isolated = builds
    compiled(model, tmp_path / "kept")
    isolated.refuse = True
    assert compiled(model, tmp_path / "kept").info["built"]
    assert ["load_engine" in words for words in made] == [False, True, False]


@pytest.mark.parametrize("options", [{"record_tactics": "true"}, {"save_engine": "a.engine"}, {"timing_cache": "t"}])
def test_builds_that_are_about_the_build_are_not_kept(builds, model, tmp_path, options, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made, _ = builds
    for _ in range(2):
        compiled(model, tmp_path / "kept", **options)
    assert not any("load_engine" in words for words in made)
    assert not (tmp_path / "kept").exists()


def test_a_damaged_folder_is_no_obstacle(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.put("k", b"engine", {"a": 1})
    assert shelf.find("k") == (tmp_path / "k.engine", {"a": 1})
    (tmp_path / "k.json").write_text("{")
    assert shelf.find("k") is None
    shelf.put("k", b"engine", {})
    (tmp_path / "k.engine").unlink()
    assert shelf.find("k") is None


def test_who_compares_builds_gets_fresh_ones(builds, model, tmp_path):
    made, _ = builds
    spec = EngineSpec("tensorrt", {"precision": "fp16"})
    loaded = Model.load(model)
    with Workspace(tmp_path / "work", kept=tmp_path / "kept") as workspace:
        for _ in range(2):
            with Runner(spec, loaded, workspace=workspace) as runner:
                runner.build()
        for _ in range(2):
            with Runner(spec, loaded, workspace=workspace, fresh=True) as runner:
                runner.build()
    assert ["load_engine" in words for words in made] == [False, True, False, False]
    assert not any(words.get("timing_cache") for words in made[2:])
