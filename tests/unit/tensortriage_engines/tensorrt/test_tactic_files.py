"""Tactics from a file to a build and from a build to a file."""

import numpy as np
import pytest

from models import write
from tensortriage.engines.base import Choice
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import DataError
from tensortriage.runs.analyses.tactics import TacticRecord, load_record, save_record
from tensortriage.workflows.engines.tactic_files import with_tactics
from tensortriage_engines.tensorrt import engine as tensorrt
from tensortriage_engines.tensorrt.engine import TensorRtEngine

CHOICE = Choice("conv", "0x7", "0x80000001", ("float:4x1",), ("half:4x1",), (), 0.25, "")
POLYGRAPHY = """{"polygraphy_class": "TacticReplayData", "replay": {"conv": {
  "polygraphy_class": "Algorithm", "implementation": 2147483649, "tactic": 7,
  "inputs": [{"dtype": "DataType.FLOAT", "strides": [4, 1], "vectorized_dim": -1, "components_per_element": 1}],
  "outputs": []}}}"""


def test_a_file_of_ours_is_given_as_it_is(tmp_path):
    save_record(TacticRecord("x", (CHOICE,)), tmp_path / "own.json")
    spec = with_tactics(EngineSpec("tensorrt", {"load_tactics": str(tmp_path / "own.json")}), tmp_path / "work")
    assert load_record(tmp_path / "work" / "tactics.json").choices == (CHOICE,)
    assert spec.options["load_tactics"] == str(tmp_path / "work" / "tactics.json")


def test_a_replay_of_polygraphy_is_put_into_our_words(tmp_path):
    (tmp_path / "replay.json").write_text(POLYGRAPHY)
    with_tactics(EngineSpec("tensorrt", {"load_tactics": str(tmp_path / "replay.json")}), tmp_path)
    (choice,) = load_record(tmp_path / "tactics.json").choices
    assert (choice.layer, choice.tactic, choice.implementation) == ("conv", "0x7", "0x80000001")
    assert choice.inputs == ("float:4x1:-1:1",)


def test_a_file_without_tactics_is_an_error(tmp_path):
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(DataError):
        with_tactics(EngineSpec("tensorrt", {"load_tactics": str(tmp_path / "no.json")}), tmp_path)


@pytest.mark.parametrize("spec", [EngineSpec("tensorrt"), EngineSpec("script", {"load_tactics": "own.json"})])
def test_other_engines_and_builds_without_tactics_are_left_alone(spec, tmp_path):
    assert with_tactics(spec, tmp_path) is spec


def test_a_build_writes_its_tactics(tmp_path, monkeypatch):
    row = {"layer": "conv", "tactic": "0x7", "implementation": "0x80000001", "inputs": ["float:4x1"],
           "outputs": ["half:4x1"], "nodes": [], "milliseconds": 0.25, "key": "", "alternatives": []}  # fmt: skip

    class Isolated:
        def __init__(self, *_, **__):
            pass

        def probe(self, words):
            return {"weak": ["fp16"], "device": "GPU"}

        def answer(self, question, path, words, **_):
            assert words["record_tactics"] == "true"
            info = {"built": True, "tactics": [row], "trtexec": "trtexec"}
            return info, {"engine": np.zeros(1, np.uint8), "timing_cache": np.zeros(0, np.uint8)}

    monkeypatch.setattr(tensorrt, "IsolatedEngine", Isolated)
    monkeypatch.setattr(tensorrt, "_PROBED", {})
    text = '<ir_version: 8, opset_import: ["" : 13]> net (float[2] x) => (float[2] y) { y = Relu (x) }'
    model = write(tmp_path / "m.onnx", text)
    TensorRtEngine().build_only(model, {"save_tactics": str(tmp_path / "t.json")})
    assert load_record(tmp_path / "t.json") == TacticRecord("tensorrt", (CHOICE,))
