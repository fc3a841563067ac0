"""Kernels of 16 bits that round inside: how far off they may be; and that all places built alike are named."""

import numpy as np
import pytest

from diagnosing import ask, named
from engine_scripts import engine_file
from tensortriage.compare.judgement.within import beyond_inner_roundings

pytestmark = pytest.mark.slow

CHAIN = """main (float[4, 8] x) => (float[4, 8] y) {
    a = Sin(x)
    b = Mul(a, x)
    c = Sub(b, x)
    y = Neg(c)
}"""


def feed():
    return {"x": np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)}


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("amount", "precision", "expected"),
    [(1.002, "fp16", "inconclusive"), (1.05, "fp16", "fusion-fault"), (1.002, "fp32", "fusion-fault")],
)
def test_what_a_kernel_may_round_inside_is_no_fault(tmp_path, amount, precision, expected):
    target = f"fault:kind=scale,amount={amount},node=mul,fused_with=sub,precision={precision}"
    verdict, _ = ask(tmp_path, named(CHAIN, "sin", "mul", "sub", "neg"), feed(), target, repro=False)
    assert verdict.verdict == expected, verdict.summary
    assert "Mul + Sub ('mul', 'sub')" in verdict.summary
    assert verdict.breakers == ("b",)
    assert bool(verdict.culprits) == (expected == "fusion-fault")


def test_ten_roundings_are_the_most():
    assert [beyond_inner_roundings(ratio) for ratio in (None, 3.5, 10.0, 10.1)] == [False, False, False, True]


WHOLE_ONLY = """
import onnx

from tensortriage_testing import FaultyEngine

RIGHT = "kind", "node", "amount", "fused_with"


class Engine(FaultyEngine):
    def ladder(self, options):
        safe = {key: word for key, word in options.items() if key not in RIGHT}
        return [("safe", safe), ("fast", options)] if "fused_with" not in options else []

    def compile(self, model, options):
        if [value.name for value in onnx.load(model).graph.input] != ["x"]:
            raise ValueError("whole models only")
        return super().compile(model, options)
"""


@pytest.mark.lengthy
@pytest.mark.parametrize("fused", [",fused_with=sub", ""], ids=["marking-restores", "an-option-restores"])
@pytest.mark.parametrize(("amount", "expected"), [(1.002, "inconclusive"), (1.05, "fusion-fault")])
def test_nor_is_it_where_no_piece_can_be_built(tmp_path, amount, expected, fused):
    file = engine_file(WHOLE_ONLY)
    target = f"script:{file},kind=scale,amount={amount},node=mul,precision=fp16{fused}"
    verdict, _ = ask(tmp_path, named(CHAIN, "sin", "mul", "sub", "neg"), feed(), target, repro=False)
    assert verdict.verdict == expected, verdict.summary
    assert verdict.breakers == (("b",) if fused else ())
    assert "rounds or approximates inside" in verdict.summary or expected == "fusion-fault"


BLOCKS = """main (float[4, 8] x) => (float[4, 8] y) {
    [abs0] a = Abs(x) [neg0] b = Neg(a) [abs1] c = Abs(b) [neg1] d = Neg(c)
    [abs2] e = Abs(d) [neg2] f = Neg(e) [end] y = Neg(f)
}"""

FUSING = """
import onnx

from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine


class Engine:
    def compile(self, path, options):
        model = onnx.load(path)
        graph = model.graph
        shown = {value.name for value in graph.output}
        made = {name for node in graph.node if node.op_type == "Abs" for name in node.output} - shown
        graph.initializer.append(onnx.helper.make_tensor("factor", onnx.TensorProto.FLOAT, [], [1.1]))
        for node in list(graph.node):
            if node.op_type == "Neg" and node.input[0] in made:
                right = node.output[0]
                node.output[0] = right + "_right"
                place = list(graph.node).index(node) + 1
                graph.node.insert(place, onnx.helper.make_node("Mul", [node.output[0], "factor"], [right]))
        changed = path.with_suffix(".fused.onnx")
        onnx.save(model, changed)
        return OnnxRuntimeEngine().compile(changed, {"optimization": "none"})
"""


def test_all_blocks_are_named_also_two_of_one_window(tmp_path):
    file = engine_file(FUSING)
    verdict, _ = ask(tmp_path, BLOCKS, feed(), f"script:{file}", repro=False)
    assert verdict.verdict == "fusion-fault", verdict.summary
    assert {culprit.node for culprit in verdict.culprits} == {f"{op}{n}" for op in ("abs", "neg") for n in range(3)}
