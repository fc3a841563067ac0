"""An engine that refuses a network in words of its own: the verdict quotes them and names the node."""

import numpy as np
import pytest

from diagnosing import ask, named

ENGINE = """
import onnx
from tensortriage.errors import BuildFailed
from tensortriage_testing import FaultyEngine

class Engine(FaultyEngine):
    def compile(self, path, options):
        options = dict(options)
        kind, marked = options.pop("without", ""), options.pop("marked", "")
        graph = onnx.load(path).graph
        for number, node in enumerate(graph.node):
            if node.op_type == kind:
                raise BuildFailed(f"layer load_param {number} own_{number} failed", slug="build-failed")
        if marked and marked in [value.name for value in graph.output]:
            raise BuildFailed("this type cannot be returned", slug="build-failed")
        return super().compile(path, options)
"""
CHAIN = """<ir_version: 8, opset_import: ["": 17]>
  g (float[4,8] x) => (float[4,8] y) {
    a = Tanh(x)
    b = Sigmoid(a)
    c = Softmax<axis=1>(b)
    d = Sqrt(c)
    e = Exp(d)
    y = Softmax<axis=0>(e)
  }"""
NAMES = ("/net/first", "/net/gate", "/net/scores", "/net/root", "/net/power", "/net/last")
FEED = {"x": np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)}


def refused(tmp_path, options):
    (tmp_path / "engine.py").write_text(ENGINE)
    verdict, _ = ask(tmp_path, named(CHAIN, *NAMES), FEED, f"script:{tmp_path / 'engine.py'},{options}")
    assert verdict.verdict == "build-failed"
    return verdict


@pytest.mark.parametrize(
    ("kind", "node"),
    [("Tanh", "/net/first"), ("Sigmoid", "/net/gate"), ("Softmax", "/net/scores"), ("Exp", "/net/power")],
)
def test_the_first_refused_node_is_named_with_the_engines_words(tmp_path, kind, node):
    verdict = refused(tmp_path, f"without={kind}")
    assert [culprit.node for culprit in verdict.culprits] == [node]
    assert "own_" in verdict.summary
    assert f"the refusal begins with {kind} '{node}'" in verdict.summary


def test_what_cannot_be_told_is_not_told(tmp_path):
    """What ends before the node is refused too, for what it returns."""
    verdict = refused(tmp_path, "without=Sqrt,marked=c")
    assert verdict.culprits == ()
    assert "begins" not in verdict.summary
