"""The ops that engines name in the messages with which they refuse a model.

The messages are ONNX Runtime 1.31's, OpenVINO 2026.4's and TensorRT 8.5.3's, recorded with nodes of other names.
"""

import onnx
import pytest

from engine_scripts import engine_file
from tensortriage.diagnose.measurements.soundness import nodes_in
from tensortriage.model.model import Model
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest

CHAIN = """<ir_version: 8, opset_import: ["": 13]>
  g (float[2,3] x) => (float[2,3] y) { a = Mul(x, x) b = Relu(a) c = Relu(b) y = Mod(c, c) }"""
NAMES = ("/d1/n/Norm", "/d1/n/Norm_1", "Mod", "/b/bad")


@pytest.fixture
def chain():
    model = onnx.parser.parse_model(CHAIN)
    for node, name in zip(model.graph.node, NAMES, strict=True):
        node.name = name
    return model


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("Error Code 10: Could not find any implementation for node /d1/n/Norm.); Error Code 2", ["/d1/n/Norm"]),
        ("for node {ForeignNode[/d1/n/Norm_1.../b/bad]}.", ["/d1/n/Norm_1", "/b/bad"]),
        ("no kernel for PWN(/b/bad), then /d1/n/Norm + /d1/n/Norm_1", ["/b/bad", "/d1/n/Norm", "/d1/n/Norm_1"]),
        ("while running Mod node. Name:'/b/bad' Status Message: fmod was false", ["/b/bad"]),
        ("While validating ONNX node '<Node(Mod): y>': Check failed", ["/b/bad"]),
        ("Conversion is failed for: Mod-13 with a message", []),  # `a` is a value, and an article
        ("/prefix/d1/n/Norm and /d1/n/Norm/deeper are others", []),
        ("", []),
    ],
)
def test_a_node_is_named_by_a_word_of_its_own(chain, tmp_path, message, named):
    onnx.save(chain, tmp_path / "m.onnx")
    assert [node.name for node in nodes_in(message, Model.load(tmp_path / "m.onnx").graph)] == named


def test_the_op_that_a_real_engine_refuses_is_named_and_cut_out(chain, tmp_path):
    onnx.save(chain, tmp_path / "m.onnx")
    request = DiagnoseRequest(model=tmp_path / "m.onnx", target="openvino", reference="float64", case=tmp_path / "case")
    verdict = diagnose(request)  # OpenVINO computes Mod of floats with fmod=1 only
    assert verdict.verdict == "build-failed"
    assert [culprit.node for culprit in verdict.culprits] == ["/b/bad"]
    assert verdict.repro is not None
    assert verdict.repro.confirmed
    cut = onnx.load(tmp_path / "case" / "repro" / "model.onnx")
    assert [node.op_type for node in cut.graph.node] == ["Mod"]
    assert verdict.next[0].endswith("repro.py")  # one op, which cannot be reduced
    assert not [command for command in verdict.next if command.startswith("triage debug reduce ")]


PICKY = """
import numpy as np
import onnxruntime

class Session:
    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path)
    def run(self, feed):
        names = [output.name for output in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, feed)))

class Engine:
    def ladder(self, options):
        return [("level=0", {"level": "0"}), ("level=1", {"level": "1"}), ("level=2", {"level": "2"}), ("as given", {})]
    def compile(self, path, options):
        if int(options.get("level", "3")) >= REFUSED:
            raise RuntimeError("no kernel at this level")
        return Session(path)
"""


@pytest.mark.lengthy
@pytest.mark.parametrize(("refused", "works"), [(3, "level=2"), (1, "level=0"), (0, "")])
def test_safer_options_with_which_the_target_runs_are_told(tmp_path, refused, works):
    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(CHAIN.replace("Mod(c, c)", "Neg(c)")).SerializeToString())
    file = engine_file(PICKY.replace("REFUSED", str(refused)))
    target = f"script:{file}"
    verdict = diagnose(DiagnoseRequest(model=tmp_path / "m.onnx", target=target, case=tmp_path / "case"))
    assert verdict.verdict == "build-failed"
    assert verdict.summary.endswith(f"; it runs with {works}") is bool(works)
    assert [f"{target},{works} " in f"{command} " for command in verdict.next].count(True) == bool(works)


def test_one_run_with_other_options_says_nothing_of_a_target_that_fails_now_and_then(tmp_path):
    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(CHAIN.replace("Mod(c, c)", "Neg(c)")).SerializeToString())
    third = "        self.runs += 1\n        assert self.runs < 3, 'the queue is full'\n"
    begins = "    def run(self, feed):\n"
    flaky = PICKY.replace("REFUSED", "9").replace(begins, f"    runs = 0\n{begins}{third}")
    file = engine_file(flaky)
    target = f"script:{file}"
    verdict = diagnose(DiagnoseRequest(model=tmp_path / "m.onnx", target=target, case=tmp_path / "case"))
    assert verdict.verdict == "engine-crash"
    assert "the queue is full" in verdict.summary
    assert " it runs" not in verdict.summary
