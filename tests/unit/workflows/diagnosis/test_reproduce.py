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
