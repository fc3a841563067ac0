"""Whatever the process of an engine answers, it is a result, an outcome, or an error with slug and cure."""

import json
import queue
import random
import traceback
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from hostile.mutated_files import said
from hostile.mutation import mutated_safetensors, mutated_tree
from hostile.tally import SEEDS, fuzzed
from tensortriage.engines.base import Limits
from tensortriage.engines.process import isolated, workers
from tensortriage.engines.process.model_terms import ModelTerms
from tensortriage.engines.process.transport import SharedFolder
from tensortriage.errors import EngineMissing, TriageError
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_worker import exchange

SPEC = {"name": "x", "dtype": "float32", "shape": ["N", 4]}
ANSWERS = {
    "start": {"python": "3.11", "executable": "python", "pid": 1, "numpy": "2", "ml_dtypes": True},
    "probe": {"info": {"version": "1", "device": "cpu"}, "seconds": 0.1},
    "compile": {
        "inputs": [SPEC], "outputs": [{**SPEC, "name": "y"}],
        "info": {"precision": "fp16", "tactics": [{"layer": "a", "tactic": "0x1", "inputs": ["x"]}]},
        "seconds": 0.1,
    },
    "run": {"shards": [], "seconds": 0.1},
    "plan": {"plan": [{"name": "a+b", "nodes": ["a", "b"], "precision": "fp16", "outputs": ["y"]}], "seconds": 0.1},
    "close": {"resident_bytes": 1000, "seconds": 0.1},
    "kill": {"died": {"code": -9, "cause": "time limit", "tail": "", "oom_killed": False}},
}  # fmt: skip
LIES = ("start", "probe", "compile", "compile", "run", "run", "shard", "plan", "close", "kill")
FAILURE = {"error": {"kind": "build", "message": "no", "slug": "", "cure": ""}, "seconds": 0.1}


class Channel:
    """A supervisor that answers as ANSWERS say, one of them mutated."""

    RemoteError = ConnectionError

    def __init__(self, folder, rng, lies):
        self._folder = folder
        self._rng = rng
        self._lies = rng.choice(LIES) if lies is None else lies
        self._said = queue.SimpleQueue()

    def send(self, text):
        message = json.loads(text)
        operation = message["op"]
        answer = dict(FAILURE if self._lies and self._rng.random() < 0.02 else ANSWERS[operation])
        if operation == "run":
            answer["shards"] = [self._shard()]
        if "id" in message:
            answer["id"] = message["id"]
        if operation != self._lies:
            self._said.put(json.dumps(answer))
        elif self._rng.random() < 0.8:  # everything but the number of the question, which is checked first
            told = mutated_tree({key: value for key, value in answer.items() if key != "id"}, self._rng)
            self._said.put(
                json.dumps({**told, "id": message["id"]} if isinstance(told, dict) and "id" in message else told)
            )
        else:
            self._said.put(self._rng.choice([said(answer, self._rng), None, 7, b"bytes", "", "\x00"]))

    def receive(self, timeout):
        try:
            return self._said.get_nowait()
        except queue.Empty:
            raise TimeoutError from None

    def _shard(self):
        (path,) = exchange.put([str(self._folder)], [exchange.Item("y", np.ones((2, 4), np.float32))])
        if self._lies == "shard":
            Path(path).write_bytes(mutated_safetensors(Path(path).read_bytes(), self._rng))
        return path


class LyingWorker(workers.Worker):
    """A worker whose supervisor is a `Channel`."""

    def __init__(self, folder, rng, lies=None):
        self.interpreter, self.affinity, self.hello = "python", "", {}
        self.alive = self.closed = False
        self._questions, self.owner = 0, -1  # nobody's: closing it ends no process
        self.folders = (str(folder),)
        self._timeout_error = TimeoutError
        self._channel = Channel(folder, rng, lies)
        self.transport = SharedFolder(self.folders)
        self.supervisor_pid, self._watches_memory, self.code = 0, True, None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("exchange")


def talk(folder):
    """Ask an engine for everything that a command may ask for."""
    engine = isolated.IsolatedEngine("script", title="engine", limits=Limits(build_seconds=1, run_seconds=1))
    engine.probe({})
    specs = [ValueSpec("x", DType.FLOAT, ("N", 4))], [ValueSpec("y", DType.FLOAT, ("N", 4))]
    session = engine.compile(folder / "m.onnx", {}, terms=ModelTerms(lambda _: specs))
    try:
        session.run({"x": np.zeros((2, 4), np.float32)})
        session.plan()
        session.tactics()
    finally:
        session.close()


@given(seed=SEEDS)
@fuzzed(300)
def test_a_lying_worker_is_an_outcome(folder, tally, monkeypatch_module, seed):
    rng = random.Random(seed)
    monkeypatch_module.setattr(isolated, "lease", lambda *_, **__: LyingWorker(folder, rng))
    try:
        talk(folder)
        tally.add("answer", "taken")
    except TriageError as error:
        tally.add("answer", error.slug)
    except Exception:
        tally.find(seed, traceback.format_exc())


def test_a_greeting_need_not_know_of_ml_dtypes(folder, monkeypatch):
    monkeypatch.setattr(isolated, "lease", lambda *_, **__: LyingWorker(folder, random.Random(0), lies=""))
    monkeypatch.setitem(ANSWERS, "start", {"pid": 1, "numpy": "2"})
    talk(folder)


@pytest.mark.parametrize("greeting", [{}, {"pid": "1", "numpy": "2"}, {"pid": 1, "numpy": 2, "ml_dtypes": "yes"}])
def test_a_greeting_that_lies(folder, monkeypatch, greeting):
    monkeypatch.setattr(isolated, "lease", lambda *_, **__: LyingWorker(folder, random.Random(0), lies=""))
    monkeypatch.setitem(ANSWERS, "start", greeting)
    with pytest.raises(EngineMissing) as caught:
        talk(folder)
    assert caught.value.slug == "worker-unusable"


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch
