"""An engine that computes in a narrow format by itself is judged by that, and told to be; one that rounds is not."""

import numpy as np
import pytest

from diagnosing import ask, step
from engine_scripts import engine_file

QUESTION = "do the outputs show a narrower format than was asked for?"
RNG = np.random.default_rng(0)


def floats(*shape):
    return ", ".join(f"{number:.6f}" for number in RNG.normal(size=shape).ravel())


NET = f"""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[5,8] x) => (float[5,8] y)
    <float[8,8] w = {{{floats(8, 8)}}}, float[8,8] v = {{{floats(8, 8)}}}> {{
        [one] a = MatMul(x, w) [bent] b = Tanh(a) [two] y = MatMul(b, v)
    }}"""
X = {"x": RNG.normal(size=(5, 8)).astype(np.float32)}

ROUNDING = """
import onnx, onnxruntime
from onnx import helper

class Session:
    def __init__(self, model):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options)

    def run(self, feed):
        names = [value.name for value in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, feed)))

class Engine:
    def compile(self, path, options):
        model = onnx.load(path)
        nodes = []
        for node in model.graph.node:
            made, node.output[0] = node.output[0], node.output[0] + "_wide"
            nodes += [node, helper.make_node("Cast", [made + "_wide"], [made + "_narrow"], to={type}),
                      helper.make_node("Cast", [made + "_narrow"], [made], to=1)]
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        return Session(model)
"""


@pytest.mark.parametrize(("kind", "word"), [(16, "bf16"), pytest.param(10, "fp16", marks=pytest.mark.lengthy)])
def test_what_computes_in_a_narrow_format_by_itself(tmp_path, kind, word):
    file = engine_file(ROUNDING.replace("{type}", str(kind)))
    verdict, _ = ask(tmp_path, NET, X, f"script:{file}")
    assert verdict.verdict == "rounding"
    assert f"rounding to {word} explains the error" in verdict.summary
    told = f"every number of its outputs is one of {word}, though fp32 was asked for: set the engine to fp32"
    assert verdict.summary.endswith(told)
    assert step(verdict, QUESTION).answer == f"yes, and it is judged by that: {told}"


def test_what_is_told_its_format_is_not_asked(tmp_path):
    verdict, _ = ask(tmp_path, NET, X, f"script:{engine_file(ROUNDING.replace('{type}', '16'))},precision=bf16")
    assert verdict.verdict == "rounding"
    assert not [each for each in verdict.steps if each.question == QUESTION]
