"""Models that turn rounding into large errors: the engine is not blamed, unless an op of it is wrong."""

import numpy as np
import pytest
from onnx import numpy_helper

from diagnosing import ask, named, step
from engine_scripts import engine_file

pytestmark = pytest.mark.slow

STEPS = """main (float[8, 8] x, float[8, 8] one) => (float[8, 8] y) {
    scaled = Mul(x, one)
    y = Floor(scaled)
}"""
"""Whole numbers are floored: one unit in the last place less, and they fall by one."""

IDS = """main (int64[32] i) => (float[32, 4] y) {
    rows = Gather(table, i)
    scaled = Mul(rows, rows)
    y = Floor(scaled)
}"""


def feed():
    x = np.random.default_rng(0).integers(1, 9, (8, 8)).astype(np.float32)
    return {"x": x, "one": np.ones((8, 8), np.float32)}


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("amount", "expected"), [(1 - 1.1e-7, "rounding"), (0.97, "local-fault")], ids=["one-rounding", "wrong"]
)
def test_a_step_function_on_its_steps(tmp_path, amount, expected):
    target = f"fault:kind=scale,node=mul,amount={amount}"
    verdict, _ = ask(tmp_path, named(STEPS, "mul", "floor"), feed(), target)
    assert verdict.verdict == expected, verdict.summary
    answer = step(verdict, "does the model amplify").answer
    assert answer.startswith("yes: one unit in the last place of the inputs moves output 'y' by")
    assert ("'scaled' is wrong in isolation" in answer) == (expected == "local-fault")


@pytest.mark.lengthy
def test_a_model_that_does_not_amplify_excuses_nothing(tmp_path):
    x = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    target = "fault:kind=scale,node=mul,amount=0.9999"
    model = named(STEPS.replace("Floor", "Tanh"), "mul", "tanh")
    verdict, _ = ask(tmp_path, model, {**feed(), "x": x}, target)
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "mul")
    assert step(verdict, "does the model amplify").answer.startswith("no")


@pytest.mark.lengthy
def test_integer_inputs_are_moved_where_numbers_first_appear(tmp_path):
    model = named(IDS, "rows", "mul", "floor")
    table = np.arange(1, 33, dtype=np.float32).reshape(8, 4)
    model.graph.initializer.append(numpy_helper.from_array(table, "table"))
    target = f"fault:kind=scale,node=mul,amount={1 - 1.1e-7}"
    verdict, _ = ask(tmp_path, model, {"i": np.arange(32, dtype=np.int64) % 8}, target)
    assert verdict.verdict == "rounding", verdict.summary


MASKED = """main (int64[32] i, int64[32, 1] m) => (float[32, 4] y) <float one = {1}, float far = {-10000}> {
    rows = Gather(table, i)
    seen = Cast <to = 1> (m)
    hidden = Sub(one, seen)
    bias = Mul(hidden, far)
    sum = Add(rows, bias)
    y = Neg(sum)
}"""
"""One unit in the last place of a mask's 1, times -10000, would be 1e-3; but a Cast of an integer is never rounded."""


@pytest.mark.lengthy
def test_a_mask_of_integers_is_exact_and_amplifies_nothing(tmp_path):
    model = named(MASKED, "rows", "cast", "sub", "mul", "add", "neg")
    table = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(table, "table"))
    tensors = {"i": np.arange(32, dtype=np.int64) % 8, "m": np.ones((32, 1), np.int64)}
    verdict, _ = ask(tmp_path, model, tensors, "fault:kind=scale,node=neg,amount=1.0005")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "neg"), verdict.summary
    assert step(verdict, "does the model amplify").answer.startswith("no")


PROGRAM = """
import numpy as np


class Engine:
    def compile(self, model, options):
        return self

    def run(self, feed):
        halves = feed["x"] / 2
        return {"y": np.tanh(np.sign(halves) * np.floor(np.abs(halves) + 0.5) / 4).astype(np.float32)}
"""
"""A program of its own, whatever model it is given: ties are rounded away from zero."""


def test_ops_of_which_nothing_was_seen_are_not_healthy_alone(tmp_path):
    """Half of the numbers are ties, which one unit in the last place decides as well; the program decides all alike."""
    text = """g (float[8,8] x) => (float[8,8] y) <float two = {2}, float four = {4}> {
        [half] h = Div(x, two)
        [whole] r = Round(h)
        [quarter] q = Div(r, four)
        [end] y = Tanh(q)
    }"""
    verdict, _ = ask(tmp_path, text, {"x": feed()["x"] - 5}, f"script:{engine_file(PROGRAM)}")
    assert verdict.verdict == "model-changed", verdict.summary
    assert "computes Round 'whole' as if ties were rounded away from zero" in verdict.summary
    assert "in isolation" not in verdict.summary
