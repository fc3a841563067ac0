"""Which node of a piece that a target computes as one is blamed in its own run."""

from types import SimpleNamespace

import numpy as np
import onnx
import pytest

from tensortriage.diagnose.rungs.operators.own_run import _culprit, _making_it
from tensortriage.model.model import Model

TEXT = """<ir_version: 8, opset_import: ["": 17]> g (float[1,2,3] x) => (float[1,3] y)
  <int64 first = {0}, float[3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] b = {1, 2, 3}, float two = {2}> {
    [pick] a = Gather<axis = 1>(x, first)
    [scale] s = Mul(a, two)
    [product] c = Gemm(s, w, b)
    [tanh] y = Tanh(c)
  }"""


@pytest.mark.parametrize(
    ("nodes", "blamed"),
    [(("pick", "scale", "product", "tanh"), "product"), (("pick", "scale", "tanh"), "pick"), (("tanh",), "tanh")],
)
def test_the_node_with_the_weight_is_blamed_and_not_one_with_an_index(tmp_path, nodes, blamed):
    """A fault in the weight of a Gemm behind a Gather (the pooler of a BERT) was the Gather's."""
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "m.onnx")
    inv = SimpleNamespace(model=Model.load(tmp_path / "m.onnx"))
    evidence = SimpleNamespace(floors=None, error=lambda value: np.float64(0.1))
    assert _culprit(inv, evidence, "y", nodes).node == blamed


def test_an_error_that_the_target_chose_makes_no_failure():
    """What is within a freedom's limit is no more a fault than what is within the floor; nothing is injected."""
    inv = SimpleNamespace(values=["s"], model=SimpleNamespace(graph=None))
    evidence = SimpleNamespace(in_context={"s": None}, error=lambda value: 0.1)
    assert _making_it(inv, evidence, {"s": 0.06}, {"s"}, {}) == ({}, 0.0)
    with pytest.raises(AttributeError, match="lab"):  # else it is run with what the target has there
        _making_it(inv, evidence, {"s": 0.06}, (), {})
