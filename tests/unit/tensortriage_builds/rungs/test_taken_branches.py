"""A fault in a branch of an If is named with its op, whatever the engine; a fault of the If itself with the If."""

import numpy as np
import pytest

from diagnosing import ask, step
from engine_scripts import engine_file

QUESTION = "does it fail in a branch of an If?"
RNG = np.random.default_rng(0)


def floats(*shape):
    return ", ".join(f"{number:.6f}" for number in RNG.normal(size=shape).ravel())


MERGED = f"""
    <ir_version: 8, opset_import: ["": 17]>
    g (bool use_cache, float[2,6] x, float[2,6] past) => (float[2,6] y)
    <float[6,6] w = {{{floats(6, 6)}}}, float[6,6] v = {{{floats(6, 6)}}}> {{
        [choice] y = If (use_cache) <
            then_branch = later () => (float[2,6] later_y) {{
                [joined] a = Add(x, past) [first] b = MatMul(a, w) [bent] c = Tanh(b) [second] later_y = MatMul(c, v)
            }},
            else_branch = first () => (float[2,6] first_y) {{ [alone] d = MatMul(x, w) [rooted] first_y = Sigmoid(d) }}
        >
    }}"""
NESTED = f"""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[2,6] x) => (float[2,6] y)
    <float[6,6] w = {{{floats(6, 6)}}}, float[1] zero = {{0}}, int64[1] size = {{12}}> {{
        [in] a = MatMul(x, w)
        [count] n = Size(a)
        [large] more = GreaterOrEqual(n, size)
        [outer] y = If (more) <
            then_branch = large () => (float[2,6] large_y) {{
                [sum] s = ReduceSum<keepdims = 0>(a)
                [positive] p = Greater(s, zero)
                [inner] large_y = If (p) <
                    then_branch = up () => (float[2,6] up_y) {{ [up] e = Exp(a) [upper] up_y = MatMul(e, w) }},
                    else_branch = down () => (float[2,6] down_y) {{ [down] f = Tanh(a) [lower] down_y = MatMul(f, w) }}
                >
            }},
            else_branch = small () => (float[2,6] small_y) {{ [same] small_y = Neg(a) }}
        >
    }}"""
X = {"x": RNG.normal(size=(2, 6)).astype(np.float32), "past": RNG.normal(size=(2, 6)).astype(np.float32)}

REWRITING = """
import onnx, onnxruntime
from onnx import helper, numpy_helper
import numpy as np

class Engine:
    def compile(self, path, options):
        model = onnx.load(path)
        self.spoil(model.graph, options["node"])
        if not any(tensor.name == "tenth_more" for tensor in model.graph.initializer):
            model.graph.initializer.append(numpy_helper.from_array(np.float32(1.1), "tenth_more"))
        return Session(onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]))

    def spoil(self, graph, name):
        for place, node in enumerate(graph.node):
            if node.name == name:
                made = node.output[0]
                node.output[0] = made + "_right"
                graph.node.insert(place + 1, helper.make_node("Mul", [made + "_right", "tenth_more"], [made]))
                return
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    self.spoil(attribute.g, name)

class Session:
    def __init__(self, session):
        self.session = session

    def run(self, feed):
        names = [each.name for each in self.session.get_outputs()]
        wanted = {each.name for each in self.session.get_inputs()}
        return dict(zip(names, self.session.run(names, {n: a for n, a in feed.items() if n in wanted})))
"""
"""An engine that shares nothing with this program: it computes 10 % more in one op of the file, in bodies too."""

OF_THE_IF = """
import onnx
from tensortriage_testing import FaultyEngine

class Engine(FaultyEngine):
    def compile(self, model, options):
        holder = [node.name for node in onnx.load(model).graph.node if node.op_type == "If"]
        return super().compile(model, {**options, **({"kind": "scale", "node": holder[0]} if holder else {})})
"""
"""An engine that is wrong at what an If returns, and at nothing inside of it."""


@pytest.mark.lengthy
@pytest.mark.parametrize(("cached", "node", "branch"), [(True, "first", "then"), (False, "alone", "else")])
def test_the_op_in_the_branch_that_is_taken(tmp_path, cached, node, branch):
    file = engine_file(REWRITING)
    feed = {"use_cache": np.array(cached), **X}
    verdict, report = ask(tmp_path, MERGED, feed, f"script:{file},node={node}", repro=True)
    first = verdict.culprits[0]
    assert (verdict.verdict, first.node, first.op_type) == ("local-fault", node, "MatMul")
    assert first.origin.body == f"choice/{branch}_branch"
    assert report.origin_words(first) == f"in choice/{branch}_branch"
    assert step(verdict, QUESTION).answer.startswith(f"yes: with choice/{branch}_branch in place")
    assert verdict.repro is not None
    assert verdict.repro.confirmed
    assert any(f"{tmp_path / 'case' / 'branches.onnx'} " in command for command in verdict.next)


@pytest.mark.lengthy
def test_an_if_in_an_if(tmp_path):
    verdict, _ = ask(tmp_path, NESTED, {"x": X["x"]}, "fault:kind=scale,amount=1.1,node=lower")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "lower")
    assert verdict.culprits[0].origin.body == "outer/then_branch/inner/else_branch"


@pytest.mark.lengthy
def test_what_is_around_an_if_has_no_body(tmp_path):
    verdict, _ = ask(tmp_path, NESTED, {"x": X["x"]}, "fault:kind=scale,amount=1.1,node=in")
    assert (verdict.culprits[0].node, verdict.culprits[0].origin.body) == ("in", "")


def test_a_fault_of_the_if_itself(tmp_path):
    file = engine_file(OF_THE_IF)
    feed = {"use_cache": np.array(True), **X}
    verdict, _ = ask(tmp_path, MERGED, feed, f"script:{file}:Engine")
    assert (verdict.verdict, verdict.culprits[0].node, verdict.culprits[0].origin.body) == ("local-fault", "choice", "")
    assert step(verdict, QUESTION).answer.startswith("no: ")


@pytest.mark.lengthy
def test_no_file_of_one_branch_is_written_as_a_cure(tmp_path):
    feed = {"use_cache": np.array(True), **X}
    target = "fault:kind=scale,amount=1.1,node=first,precision=fp16"
    verdict, _ = ask(tmp_path, MERGED, feed, target, fix=tmp_path / "fixed.onnx")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "first")
    assert not (tmp_path / "fixed.onnx").exists()


def test_rounding_in_a_branch_is_no_fault(tmp_path):
    verdict, _ = ask(tmp_path, MERGED, {"use_cache": np.array(True), **X}, "emulate:precision=bf16")
    assert verdict.verdict == "rounding"
