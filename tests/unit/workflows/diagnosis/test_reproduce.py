"""A culprit that does not fail in isolation: that, too, is asked once in a case."""

import pytest

from diagnosing import CHAIN_FEED, ask, softmax_chain, step
from engine_scripts import engine_file

pytestmark = pytest.mark.lengthy

PARTICULAR = """
import onnx
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage_testing import FaultyEngine

class Engine(FaultyEngine):
    def compile(self, path, options):
        if len(onnx.load(path).graph.node) == 1:
            {alone}
        return super().compile(path, options)
"""


@pytest.mark.parametrize(
    ("alone", "told"),
    [
        ("return OnnxRuntimeEngine().compile(path, {})", "no: cut out, it is right; it fails only within the model"),
        ("raise ValueError('one op is too few')", "unknown: "),
    ],
    ids=["right", "refused"],
)
def test_what_does_not_reproduce_costs_nothing_in_a_finished_case(tmp_path, alone, told):
    file = engine_file(PARTICULAR.replace("{alone}", alone))
    target = f"script:{file},kind=scale,node=softmax,amount=1.05"
    first, again = (ask(tmp_path, softmax_chain(), CHAIN_FEED, target, repro=True)[0] for _ in range(2))
    question = "does the culprit fail in isolation"
    assert (first.verdict, first.culprits[0].node) == ("local-fault", "softmax"), first.summary
    assert step(first, question).answer.startswith(told)
    assert (again.verdict, again.repro, step(again, question).answer) == (
        first.verdict, None, step(first, question).answer,
    )  # fmt: skip
    assert {each.question: each.checks for each in again.steps if each.checks} == {}
    assert (again.cost.builds, again.cost.checks) == (0, 0)


def test_nan_of_the_whole_model_is_not_reproduced_by_the_rounding_of_its_op_alone(tmp_path):
    alone = """net = onnx.load(path)
            net.graph.node[0].output[0] = "exact"  # one element times 1 + 2^-22: rounding, no NaN
            near = np.float32([1 + 2**-22] + [1] * (net.graph.output[0].type.tensor_type.shape.dim[-1].dim_value - 1))
            net.graph.initializer.append(numpy_helper.from_array(near, "near"))
            net.graph.node.append(helper.make_node("Mul", ["exact", "near"], [net.graph.output[0].name]))
            onnx.save(net, str(path) + ".near.onnx")
            return OnnxRuntimeEngine().compile(Path(str(path) + ".near.onnx"), {})"""
    head = "from pathlib import Path\nimport numpy as np\nfrom onnx import helper, numpy_helper\n"
    file = engine_file(head + PARTICULAR.replace("{alone}", alone))
    target = f"script:{file},kind=nan,node=softmax"
    found = ask(tmp_path, softmax_chain(), CHAIN_FEED, target, repro=True)[0]
    assert (found.verdict, found.culprits[0].node) == ("non-finite", "softmax"), found.summary
    assert step(found, "does the culprit fail in isolation").answer.startswith("no: cut out, it is right")
    assert found.repro is None
