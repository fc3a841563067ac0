"""An engine that is given as a file, as a deployed plan is: judged as a whole, and nothing is made up of it."""

from pathlib import Path

import numpy as np
import pytest

from diagnosing import CHAIN_FEED, ask, softmax_chain, step
from models import write
from tensortriage.engines.capabilities import RunsGivenEngines
from tensortriage_engines.openvino import engine as openvino

pytest.importorskip("openvino")
pytestmark = [pytest.mark.slow, pytest.mark.engine]
OPTION = "load_engine"


def plain(options):
    return {key: value for key, value in options.items() if key != OPTION}


class GivenEngine(openvino.OpenVinoEngine, RunsGivenEngines):
    """OpenVINO with an option that names another model, which it then runs whatever it is handed."""

    options = {**openvino.OpenVinoEngine.options, OPTION: "the file"}  # noqa: RUF012

    def without_file(self, options):
        return plain(options) if OPTION in options else None

    def compile(self, model, options):
        return super().compile(Path(options.get(OPTION, model)), plain(options))

    def precision(self, options):
        return super().precision(plain(options))

    def builds_vary(self, options):
        return super().builds_vary(plain(options))

    def ladder(self, options):
        return [("as given", dict(options))]


@pytest.fixture
def given(monkeypatch):
    monkeypatch.setattr(openvino, "OpenVinoEngine", GivenEngine)


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
    assert step(verdict, "is any op wrong in isolation?").answer.startswith("unknown")
