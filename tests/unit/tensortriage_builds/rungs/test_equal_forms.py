"""A kernel for open sizes alone is named with its op; an engine that runs a kept build is not wrong at an op."""

import numpy as np
import pytest

from diagnosing import ask, step
from engine_scripts import engine_file

QUESTION = "is the same model right in another form?"
RNG = np.random.default_rng(0)


def floats(*shape):
    return ", ".join(f"{number:.6f}" for number in RNG.normal(size=shape).ravel())


ROWS = f"""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[rows,6] x) => (float[rows,6] y)
    <float[6,6] w = {{{floats(6, 6)}}}, float[6,6] v = {{{floats(6, 6)}}}, float[6,6] u = {{{floats(6, 6)}}}> {{
        [one] a = MatMul(x, w) [bent] b = Tanh(a) [two] c = MatMul(b, v) [bow] d = Sigmoid(c) [three] e = MatMul(d, u)
        [soft] y = Softmax(e)
    }}"""
X = {"x": RNG.normal(size=(3, 6)).astype(np.float32)}

SESSION = """
import onnx, onnxruntime
from onnx import numpy_helper

class Session:
    def __init__(self, model):
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])

    def run(self, feed):
        names = [value.name for value in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, feed)))
"""
SPOILED = """
class Engine:
    def compile(self, path, options):
        model = onnx.load(path)
        names = [node.name for node in model.graph.node]
        opened = any(size.dim_param for value in model.graph.input for size in value.type.tensor_type.shape.dim)
        if {when}:
            for tensor in model.graph.initializer:
                if tensor.name == "v":
                    other = numpy_helper.to_array(tensor)[::-1].copy()
                    tensor.CopyFrom(numpy_helper.from_array(other, tensor.name))
        return Session(model)
"""
WHOLE = "names == ['one', 'bent', 'two', 'bow', 'three', 'soft']"
IN_OPS = SESSION + SPOILED.format(when="opened")
IN_THE_WHOLE = SESSION + SPOILED.format(when=f"opened and {WHOLE}")
IN_THE_WHOLE_ALONE = f"{WHOLE} and [value.name for value in model.graph.output] == ['y']"
KEPT = (
    SESSION
    + """
import os
FILE = os.path.splitext(__file__)[0] + ".built"
"""
    + SPOILED.format(when=IN_THE_WHOLE_ALONE).replace(
        "        return Session(model)",
        f"""        if {IN_THE_WHOLE_ALONE}:
            if not os.path.exists(FILE):
                onnx.save(model, FILE)
            model = onnx.load(FILE)
        return Session(model)""",
    )
)
"""Builds of the whole are kept by the names of nodes; the first one had other weights."""
IN_PLACE = SESSION + SPOILED.format(when=IN_THE_WHOLE_ALONE)
"""Wrong with its own weights, in the unchanged whole alone, as by a plan of memory."""


def test_an_op_that_is_wrong_where_sizes_are_open(tmp_path):
    verdict, _ = ask(tmp_path, ROWS, X, f"script:{engine_file(IN_OPS)}")
    first = verdict.culprits[0]
    assert (verdict.verdict, first.node, first.effect) == ("local-fault", "two", "goes wrong where sizes are open")
    assert step(verdict, QUESTION).answer == "yes: with fixed sizes (x: [3, 6])"
    assert "--override-input-shapes 'x:[3,6]'" in verdict.next[0]


@pytest.mark.lengthy
def test_a_whole_that_is_wrong_where_sizes_are_open(tmp_path):
    verdict, _ = ask(tmp_path, ROWS, X, f"script:{engine_file(IN_THE_WHOLE)}")
    assert (verdict.verdict, verdict.culprits[0].node) == ("fusion-fault", "two")
    assert "wrong where sizes are open (dynamic) and right with static ones" in verdict.summary


def test_an_engine_that_runs_what_it_built_before(tmp_path):
    verdict, _ = ask(tmp_path, ROWS.replace("rows,6", "3,6"), X, f"script:{engine_file(KEPT)}")
    assert (verdict.verdict, verdict.culprits, verdict.confidence) == ("comparison-unsound", (), 0.97)
    assert "does not run this model" in verdict.summary


@pytest.mark.lengthy
def test_an_engine_that_is_wrong_in_the_whole_with_its_own_weights(tmp_path):
    verdict, _ = ask(tmp_path, ROWS.replace("rows,6", "3,6"), X, f"script:{engine_file(IN_PLACE)}")
    assert (verdict.verdict, step(verdict, QUESTION).answer) == ("fusion-fault", "no other form is known")


@pytest.mark.parametrize("first", ["two", pytest.param("three", marks=pytest.mark.lengthy)])
def test_a_fusion_is_none_of_these(tmp_path, first):
    after = {"two": "bow", "three": "soft"}[first]
    verdict, _ = ask(tmp_path, ROWS, X, f"fault:kind=scale,amount=1.3,node={after},fused_with={first}")
    assert (verdict.verdict, step(verdict, QUESTION).answer) == ("fusion-fault", "no")
