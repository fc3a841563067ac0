"""Ops whose results have another shape or type: decisive by themselves, whether or not it shows at the outputs."""

import numpy as np
import pytest

from diagnosing import ask, named, step
from engine_scripts import engine_file
from tensortriage.compare.measured import compare_all
from tensortriage.values.store import MemoryStore

ENGINE = """
import onnx
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine

class Engine:
    def compile(self, path, options):
        model = onnx.load(path)
        for tensor in model.graph.initializer:
            if tensor.name == "ends":
                tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) + 1, "ends"))
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
        changed = path.with_suffix(".changed.onnx")
        onnx.save(model, changed)
        return OnnxRuntimeEngine().compile(changed, {"optimization": "none"})
"""
MODEL = """
  g (float[2,6] x) => (float[2,%s] y) <int64[1] starts = {0}, int64[1] ends = {4}, int64[1] axes = {1}> {
    a = Exp(x)
    s = Slice(a, starts, ends, axes)
    y = %s(s)
  }"""
FEED = {"x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)}


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("last", "precision"),
    [("ReduceMean<axes = [1]>", "fp32"), ("Neg", "fp32"), ("Neg", "fp16")],
    ids=["hidden", "at-the-outputs", "to-be-kept-in-fp32"],
)
def test_an_op_that_makes_another_shape_is_the_culprit(tmp_path, last, precision):
    """The engine's Slice takes one element more; a mean hides the shape from the outputs, a Neg does not."""
    file = engine_file(ENGINE)
    text = '<ir_version: 8, opset_import: ["": 17]>' + MODEL % (1 if "Mean" in last else 4, last)
    target = f"script:{file},precision={precision}"
    verdict, report = ask(tmp_path, named(text, "exp", "cut", "last"), FEED, target)
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "cut"), verdict.summary
    assert "has shape [2, 5] instead of [2, 4]" in verdict.culprits[0].reason
    assert "shape [2, 5] instead of [2, 4]" in verdict.summary
    assert len(verdict.culprits) == 1
    assert report.verdict.verdict == "local-fault"
    if "Mean" not in last:
        assert step(verdict, "which op returns a wrong shape?").answer == "'cut'"


def test_a_run_that_fails_over_another_shape_is_the_fault_of_the_op_that_made_it(tmp_path):
    """The Reshape that cannot take what the Slice made is innocent, and the engine did not crash."""
    file = engine_file(ENGINE)
    text = '<ir_version: 8, opset_import: ["": 17]>' + MODEL.replace("float[2,%s] y", "float[4,2] y").replace(
        "%s(s)", "Reshape(s, form)"
    ).replace("> {", ", int64[2] form = {4, 2}> {", 1)
    verdict, _ = ask(tmp_path, named(text, "exp", "cut", "form"), FEED, f"script:{file}")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "cut"), verdict.summary
    assert "failed to run" in next(each.answer for each in verdict.steps if each.question.endswith("build and run?"))


@pytest.mark.lengthy
def test_a_target_that_runs_whole_models_alone_shows_where_its_own_run_has_another_shape(tmp_path):
    """Such as a given file, of which no op runs alone; what is made of the wrong shape is not blamed."""
    whole = "        if len(model.graph.input) > 1:\n            raise RuntimeError('this is no whole model')\n"
    file = engine_file(ENGINE.replace("        for tensor", whole + "        for tensor", 1))
    text = '<ir_version: 8, opset_import: ["": 17]>' + MODEL % (4, "Neg")
    verdict, _ = ask(tmp_path, named(text, "exp", "cut", "last"), FEED, f"script:{file}")
    assert (verdict.verdict, [each.node for each in verdict.culprits]) == ("local-fault", ["cut"]), verdict.summary
    assert "is wrong in the full run of" in verdict.summary
    assert verdict.culprits[0].reason == "there its result 's' has shape [2, 5] instead of [2, 4]"


def test_another_kind_of_type_has_no_figures():
    stored = MemoryStore({"f": np.full(2, 1.5, np.float32), "i": np.ones(2, np.int64), "g": np.ones(2, np.float32)})
    arrays = [("f", np.ones(2, np.int32)), ("i", np.ones(2, np.int32)), ("g", np.ones((1, 2), np.float32))]
    found = compare_all(arrays, stored)
    assert dict(found.misshapen) == {"f": "type int32 instead of float32", "g": "shape [1, 2] instead of [2]"}
    assert [*found.metrics] == ["i"]


ALONE = """
import onnx
from tensortriage_testing import FaultyEngine

class Engine(FaultyEngine):
    def compile(self, path, options):
        session = super().compile(path, options)
        graph = onnx.load(path).graph
        fed = {value.name for value in graph.input}
        alone = {node.output[0] for node in graph.node if node.op_type == "Identity" and node.input[0] in fed}
        run = session.run
        session.run = lambda feed: {name: a.T if name in alone else a for name, a in run(feed).items()}
        return session
"""


@pytest.mark.lengthy
def test_another_shape_of_an_op_alone_is_no_fault_of_an_output_that_has_the_right_one(tmp_path):
    """Seen on MNN 3.0.0: an Identity that is all of a piece gives the input of another; in the model it is right."""
    file = engine_file(ALONE)
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2,6] x) => (float[2,6] y) {'
    text += "a = Exp(x) b = Neg(a) y = Identity(b)}"
    target = f"script:{file},kind=scale,node=exp"
    verdict, _ = ask(tmp_path, named(text, "exp", "sign", "same"), FEED, target)
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "exp"), verdict.summary


@pytest.mark.lengthy
def test_a_range_whose_operand_is_one_number_in_an_axis_does_not_stop_the_others(tmp_path):
    """ONNX Runtime computes it, and refuses the same operand as a constant, which ops run alone would have."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[6] x) => (float[6] y)
      <int64[1] zero = {0}, int64[1] one = {1}, int64 first = {0}, int64 step = {1}, float w = {0.3}> {
        [shape] s = Shape(x)
        [slice] n = Slice(s, zero, one, zero)
        [range] r = Range(first, n, step)
        [cast] f = Cast<to = 1>(r)
        [mul] m = Mul(f, w)
        [add] y = Add(x, m)
      }"""
    verdict, _ = ask(tmp_path, text, {"x": np.linspace(-1, 1, 6, dtype=np.float32)}, "fault:kind=scale,node=mul")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "mul")
