"""Engines that refuse to show some tensors, as targets, and such that show outputs only, as references."""

import numpy as np
import pytest

from diagnosing import ask, step
from engine_scripts import engine_file
from tensortriage_testing import encoder, feed_for

pytestmark = pytest.mark.slow

REFUSING = """
import onnx
from tensortriage.errors import BuildFailed
from tensortriage_testing import FaultyEngine

class Engine(FaultyEngine):
    def compile(self, path, options):
        options = dict(options)
        name, word = options.pop("refused", ""), options.pop("type", "")
        model = onnx.shape_inference.infer_shapes(onnx.load(path))
        kinds = {v.name: v.type.tensor_type.elem_type for v in [*model.graph.value_info, *model.graph.output]}
        for output in model.graph.output:
            if output.name == name or (word and kinds[output.name] == getattr(onnx.TensorProto, word)):
                raise BuildFailed("requires bool or uint8 I/O but node can not be handled", slug="build-failed")
        return super().compile(path, options)
"""
MASKED = """<ir_version: 8, opset_import: ["": 17]>
  g (float[4,8] x) => (float[4,8] y) <float[8] w = {1,2,3,4,5,6,7,8}, float zero = {0}, float low = {-5}> {
    a = Mul(x, w)
    b = Less(a, zero)
    c = Where(b, low, a)
    s = Softmax<axis=1>(c)
    y = Mul(s, x)
  }"""


@pytest.fixture
def refusing(tmp_path):
    file = engine_file(REFUSING)
    return f"script:{file}"


def named_nodes():
    from diagnosing import named

    return named(MASKED, "scale", "less", "where", "softmax", "last")


FEED = {"x": np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)}


@pytest.mark.lengthy
def test_a_bool_that_the_target_refuses_to_show_hides_no_other_layer(tmp_path, refusing):
    target = f"{refusing},type=BOOL,kind=scale,node=softmax,amount=1.05"
    verdict, report = ask(tmp_path, named_nodes(), FEED, target)
    layers = step(verdict, "what do the layers look like?")
    assert "the target refuses to show 'b'" in layers.answer
    assert [*layers.evidence["refused"]] == ["b"]
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "softmax"), verdict.summary
    seen = {row.value for row in report.layers.rows if row.in_context_error is not None}
    assert seen == {"a", "c", "s", "y"}


@pytest.mark.lengthy
def test_one_tensor_of_a_transformer_that_cannot_be_marked(tmp_path, refusing):
    model = encoder(layers=2, width=16, heads=2, tokens=4, batch=2)
    values = [name for node in model.graph.node for name in node.output]
    hidden, wrong = values[len(values) // 3], [n.name for n in model.graph.node if n.op_type == "MatMul"][-1]
    target = f"{refusing},refused={hidden},kind=scale,node={wrong},amount=1.05"
    verdict, _ = ask(tmp_path, model, feed_for(model), target)
    assert f"refuses to show '{hidden}'" in step(verdict, "what do the layers look like?").answer
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", wrong), verdict.summary
    assert verdict.cost.builds < 80


OUTPUTS_ONLY = """
import onnx
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine

class Session:
    def __init__(self, session): self.session = session
    def run(self, feed): return {"y": self.session.run(feed)["y"]}

class Engine:
    def compile(self, path, options):
        model = onnx.load(path)
        if "y" not in [value.name for value in model.graph.output]:
            raise ValueError("this runtime knows its own model only")
        return Session(OnnxRuntimeEngine().compile(path, {}))
"""


@pytest.mark.lengthy
def test_a_reference_that_answers_outputs_only(tmp_path):
    file = engine_file(OUTPUTS_ONLY)
    target = "fault:kind=scale,node=softmax,amount=1.05"
    given = {"reference": f"script:{file}"}
    verdict, _ = ask(tmp_path, named_nodes(), FEED, target, **given)
    told = step(verdict, "does the reference show its inner values?")
    assert told.answer.startswith("no: it returns only the model's outputs; inner values come from onnxruntime")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "softmax"), verdict.summary
    again, _ = ask(tmp_path, named_nodes(), FEED, target, **given)
    assert again.verdict == "local-fault"
    assert again.cost.builds < verdict.cost.builds
    assert step(again, "does the reference show its inner values?").answer == told.answer


def test_a_healthy_target_matches_a_reference_that_answers_outputs_only(tmp_path):
    file = engine_file(OUTPUTS_ONLY)
    reference = f"script:{file}"
    verdict, _ = ask(tmp_path, named_nodes(), FEED, "onnxruntime", reference=reference)
    assert verdict.verdict == "match", verdict.summary
