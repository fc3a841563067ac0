"""An engine that takes a pair of QuantizeLinear and DequantizeLinear for nothing, as QNN 2.7.0 does in fp16 graphs."""

import numpy as np
import pytest

from diagnosing import ask, named, step
from engine_scripts import engine_file

MODEL = """<ir_version: 8, opset_import: ["": 17]> g (float[4, 8] x) => (float[4, 8] y)
  <float s = {0.01}, int8 z = {0}> {
    r = Relu(x)
    q = QuantizeLinear(r, s, z)
    d = DequantizeLinear(q, s, z)
    y = Mul(d, d) }"""
QUESTION = "is the target right on made-up data as well?"
ENGINE = """
import onnx, onnxruntime

class Engine:
    def compile(self, model, options):
        proto = onnx.load(str(model))
        instead = {}
        for node in proto.graph.node:
            if node.op_type == "QuantizeLinear":
                instead[node.output[0]] = node.input[0]
            if node.op_type == "DequantizeLinear":
                instead[node.output[0]] = instead[node.input[0]]
        for node in proto.graph.node:
            if node.op_type == "Mul":
                node.input[:] = [instead[value] for value in node.input]
        return Session(onnxruntime.InferenceSession(proto.SerializeToString()))

class Session:
    def __init__(self, session):
        self.session = session

    def run(self, feed):
        names = [output.name for output in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, feed)))
"""


def test_pairs_that_an_engine_leaves_out_are_told(tmp_path):
    file = engine_file(ENGINE)
    within = np.random.default_rng(0).uniform(0, 1.2, (4, 8)).astype(np.float32)  # the pair holds up to 1.27
    target = f"script:{file},precision=int8"
    verdict, _ = ask(tmp_path, MODEL, {"x": within}, target)
    assert verdict.verdict == "input-sensitive"
    assert "it leaves out 1 of 1 pairs" in verdict.summary
    found = step(verdict, QUESTION)
    assert found.evidence["value"] == "r"
    made_up = found.evidence["share"]  # of normal numbers 10 % lie above 1.27
    assert 0.0 < made_up < 0.4
    assert found.evidence["error"] < found.evidence["relative_error"]


@pytest.mark.lengthy
def test_another_fault_beyond_the_range_is_not_taken_for_it(tmp_path):
    within = np.random.default_rng(0).uniform(0, 1.2, (4, 8)).astype(np.float32)
    model = named(MODEL, "relu", "quantize", "dequantize", "square")  # at most 1.27 squared, 1.61
    verdict, _ = ask(tmp_path, model, {"x": within}, "fault:kind=clip,node=square,amount=1.5")
    assert verdict.verdict == "input-sensitive"
    assert "leaves out" not in verdict.summary
