"""Ops that are wrong alike, as all of one kind on an engine with a wrong kernel, are to blame together."""

import types

import numpy as np
import pytest

from diagnosing import ask, named, step
from engine_scripts import engine_file
from models import write
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.function_pieces import only_together
from tensortriage.diagnose.measurements.local_errors.local import Local
from tensortriage.diagnose.measurements.local_errors.replay import longest_path
from tensortriage.diagnose.measurements.local_errors.wired_ops import Wired
from tensortriage.diagnose.rungs.operators.blame import TOGETHER
from tensortriage.envelope.ops import OpLimits
from tensortriage.envelope.setting import Floors
from tensortriage.model.model import Model
from tensortriage.values.store import MemoryStore

DEPTH = 6
ENGINE = """
import onnx, onnxruntime as ort

class Session:
    def __init__(self, session): self.session = session
    def run(self, feed):
        names = [value.name for value in self.session.get_outputs()]
        return dict(zip(names, self.session.run(None, dict(feed))))

class Engine:
    def compile(self, path, options):  # every Neg gives 1.01 times what it should
        model = onnx.load(str(path))
        nodes = list(model.graph.node)
        model.graph.initializer.append(onnx.helper.make_tensor("factor", 1, [], [1.01]))
        for number, node in reversed(list(enumerate(nodes))):
            if node.op_type == "Neg":
                result, node.output[0] = node.output[0], "right::" + node.output[0]
                nodes.insert(number + 1, onnx.helper.make_node("Mul", [node.output[0], "factor"], [result]))
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        return Session(ort.InferenceSession(model.SerializeToString(), options))
"""


def chain():
    """Return a model of Neg and Mul in turn, from x to y."""
    lines = []
    for number in range(DEPTH):
        lines += [f"t{number} = Neg({f'm{number - 1}' if number else 'x'})"]
        lines += [f"{f'm{number}' if number < DEPTH - 1 else 'y'} = Mul(t{number}, w)"]
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[4,8] x) => (float[4,8] y) <float[8] w = '
    text += "{0.9,1,1.1,1.2,1.3,1.4,1.5,1.6}> {" + "\n".join(lines) + "}"
    return named(text, *(f"{op}{number}" for number in range(DEPTH) for op in ("neg", "mul")))


@pytest.mark.slow
def test_a_kind_of_op_that_is_wrong_everywhere_is_to_blame(tmp_path):
    file = engine_file(ENGINE)
    feed = {"x": np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)}
    verdict, _ = ask(tmp_path, chain(), feed, f"script:{file}")
    assert verdict.verdict == "local-fault", verdict.summary
    assert {culprit.op_type for culprit in verdict.culprits} == {"Neg"}
    assert f"{DEPTH} such ops account for" in verdict.summary
    together = step(verdict, TOGETHER)
    assert together.evidence["explained"] > 0.5
    assert together.evidence["rounds"] <= DEPTH


def test_rounds_are_at_most_the_wrong_ops_on_one_path(tmp_path):
    graph = Model.load(write(tmp_path / "m.onnx", chain())).graph
    assert longest_path(graph, ["neg0", "mul2", "neg5"]) == 3
    assert longest_path(graph, []) == 0


def test_what_a_fused_piece_may_do_excuses_no_op_that_is_wrong_alone(tmp_path):
    inv = types.SimpleNamespace(model=Model.load(write(tmp_path / "m.onnx", chain())))
    right, wrong = np.ones(8, np.float32), np.full(8, 1.01, np.float32)
    metrics = {"t0": measure(right, wrong), "m0": measure(right, right), "t1": measure(right, right)}
    floors = Floors(dict.fromkeys(metrics, 1e-7), dict.fromkeys(metrics, 1e-7), {}, "")
    local = Local(metrics, floors, OpLimits.plain(floors), {}, MemoryStore({}))
    guilty, innocent = Wired(("neg0", "mul0"), {}, 0.0), Wired(("mul0", "neg1"), {}, 0.0)
    assert only_together(inv, local, [guilty, innocent]) == [innocent]
