"""A reference that answers in float64 is looked into as any other: values have the types that the model gives them."""

import onnx
import pytest

from diagnosing import CHAIN_FEED, ask, softmax_chain

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

OUTPUTS_ONLY = """
import numpy as np
class Session:
    def run(self, feed):
        x = feed["x"].astype(np.float64)
        e = np.exp(np.tanh(x * np.arange(1.0, 9.0)))
        return {"y": e / e.sum(1, keepdims=True) * x}
class Engine:
    def compile(self, model, options):
        return Session()
"""


@pytest.mark.parametrize("reference", ["float64", "script:double.py"])
def test_the_op_is_named_and_reproduced(tmp_path, monkeypatch, reference):
    (tmp_path / "double.py").write_text(OUTPUTS_ONLY)
    monkeypatch.chdir(tmp_path)
    target = "fault:kind=scale,node=softmax,amount=1.05"
    verdict, report = ask(tmp_path, softmax_chain(), CHAIN_FEED, target, reference=reference, repro=True)
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "softmax"), verdict.summary
    assert verdict.repro.confirmed
    assert {row.dtype for row in report.outputs.rows} == {"float32"}
    cut = onnx.load(tmp_path / "case" / "repro" / "model.onnx")
    assert {value.type.tensor_type.elem_type for value in cut.graph.input} == {onnx.TensorProto.FLOAT}
