"""An engine that is given as a file, as a deployed plan is: judged as a whole, and nothing is made up of it."""

from pathlib import Path

import numpy as np
import pytest

from diagnosing import CHAIN_FEED, ask, softmax_chain, step
from models import write
from tensortriage.engines.base import RunsGivenEngines
from tensortriage.engines.openvino import OpenVinoEngine

pytest.importorskip("openvino")
pytestmark = [pytest.mark.slow, pytest.mark.engine]
OPTION = "load_engine"


@pytest.fixture
def given(monkeypatch):
    """Give OpenVINO an option that names another model, which it then runs whatever it is handed."""
    right, precision = OpenVinoEngine.compile, OpenVinoEngine.precision

    def without_file(self, options):
        left = {key: value for key, value in options.items() if key != OPTION}
        return left if OPTION in options else None

    def plain(options):
        return {key: value for key, value in options.items() if key != OPTION}

    def compile_given(self, model, options):
        return right(self, Path(options.get(OPTION, model)), plain(options))

    monkeypatch.setattr(OpenVinoEngine, "options", {**OpenVinoEngine.options, OPTION: "the file"})
    monkeypatch.setattr(OpenVinoEngine, "without_file", without_file, raising=False)
    monkeypatch.setattr(OpenVinoEngine, "compile", compile_given)
    monkeypatch.setattr(OpenVinoEngine, "precision", lambda self, options: precision(self, plain(options)))
    for name in ("tells_plan", "builds_vary"):
        if hasattr(OpenVinoEngine, name):
            old = getattr(OpenVinoEngine, name)
            monkeypatch.setattr(OpenVinoEngine, name, lambda self, options, old=old: old(self, plain(options)))
    monkeypatch.setattr(OpenVinoEngine, "ladder", lambda self, options: [("as given", dict(options))])
    RunsGivenEngines._abc_caches_clear()  # isinstance remembers what a class had when it was asked first
    yield
    RunsGivenEngines._abc_caches_clear()


def wrong_chain():
    model = softmax_chain()
    model.graph.initializer[0].float_data[:] = []
    model.graph.initializer[0].raw_data = (np.arange(1, 9) * 1.05).astype(np.float32).tobytes()
    return model


@pytest.mark.parametrize("wrong", [False, True], ids=["healthy", "planted"])
def test_a_given_engine_is_judged_as_a_whole(tmp_path, given, wrong):
    """Every part of the model, and every change of it, would run the same file: no op may be blamed by that."""
    file = write(tmp_path / "given.onnx", wrong_chain() if wrong else softmax_chain())
    target = f"openvino:precision=fp32,{OPTION}={file}"
    verdict, _ = ask(tmp_path, softmax_chain(), CHAIN_FEED, target, random_too=False)
    if not wrong:
        assert verdict.verdict == "match", verdict.summary
        return
    assert (verdict.verdict, list(verdict.culprits)) == ("inconclusive", []), verdict.summary
    assert "runs as a whole" in verdict.summary
    assert [command for command in verdict.next if command.startswith("triage diagnose")]
    assert not any(OPTION in command for command in verdict.next)
    assert not [each for each in verdict.steps if "from build to build" in each.question]  # the same file again
    assert step(verdict, "is any op wrong by itself?").answer.startswith("unknown")
