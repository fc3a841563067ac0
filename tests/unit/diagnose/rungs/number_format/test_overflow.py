"""What a format turns into Inf or 0 is named also where no result is ever NaN or Inf, or all of them are."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from diagnosing import ask

RNG = np.random.default_rng(4)
X = RNG.standard_normal((4, 16)).astype(np.float32)
RUNTIME = "com.microsoft"
TARGET = "emulate:precision=fp16"


NORMALIZED = """g (float[4, 16] x) => (float[4, 16] y) <float large = {98000000}> {
    [grown] a = Mul(x, small)
    [silenced] b = Div(a, large)
    [back] c = Mul(b, small)
    [end] y = Tanh(c)
}"""


def with_small(text):
    """Return a model that multiplies by 30000 twice, which fp16 holds, and divides by a constant between."""
    return text.replace("<float large", "<float small = {30000}, float large")


def test_a_constant_beyond_the_format_that_silences_what_it_divides(tmp_path):
    """x * 3e4 / 9.8e7 * 3e4 is 9.2 x; in fp16 9.8e7 is Inf, the quotient 0, and so is every result: nothing is NaN."""
    verdict, _ = ask(tmp_path, with_small(NORMALIZED), {"x": X / 2}, TARGET)
    assert (verdict.verdict, verdict.exit_code) == ("range-overflow", 1), verdict.summary
    assert verdict.culprits[0].node == "silenced"
    assert "'large' has magnitude 98 million" in verdict.culprits[0].reason
    assert verdict.remedy.nodes == ("silenced",)


@pytest.mark.parametrize(
    ("text", "first", "reason"),
    [
        ("[tiny] a = Mul(x, small)\n [back] y = Mul(a, large)", "tiny", "constant 'small', of 1e-08 at most, becomes"),
        ("[half] h = Mul(x, less)\n [tiny] a = Mul(h, less)\n [back] b = Mul(a, large)\n [again] y = Mul(b, large)",
         "tiny", "its result, of "),
        ("[tiny] a = Mul(x, small)\n [back] b = Mul(a, huge)\n y = Tanh(b)", "back", "constant 'huge' has magnitude"),
    ],
)  # fmt: skip
def test_what_becomes_zero_and_carries_the_loss_is_named(tmp_path, text, first, reason):
    """x * 1e-8 * 5e4, x * 3e-5 * 3e-5 * 5e4 * 5e4, x * 1e-8 * 1e8: 1e-8 is 0 in fp16, and what it multiplies."""
    constants = "float small = {1e-8}, float less = {3e-5}, float large = {5e4}, float huge = {1e8}"
    verdict, _ = ask(
        tmp_path, f"g (float[4, 16] x) => (float[4, 16] y) <{constants}> {{ {text} }}", {"x": X / 2}, TARGET
    )
    assert (verdict.verdict, verdict.exit_code) == ("range-overflow", 1), verdict.summary
    assert verdict.culprits[0].node == first
    assert reason in verdict.culprits[0].reason
    assert verdict.remedy is not None
    assert verdict.remedy.error_after < 0.01


def test_a_constant_that_becomes_zero_without_harm_is_no_verdict(tmp_path):
    """What is added to numbers of size 1 may be 0 as well."""
    text = "g (float[4, 16] x) => (float[4, 16] y) <float small = {1e-9}> { [some] a = Add(x, small)\n y = Relu(a) }"
    verdict, _ = ask(tmp_path, text, {"x": X}, TARGET)
    assert verdict.verdict == "rounding", verdict.summary


def test_a_mask_beyond_the_format_does_no_harm(tmp_path):
    """-1e9 is -Inf in fp16, and a Softmax of it 0 all the same: the answer is what rounding costs."""
    mask = "g (float[4, 16] x) => (float[4, 16] y) <float[16] mask = {" + ", ".join(["0"] * 12 + ["-1e9"] * 4) + "}>"
    verdict, _ = ask(tmp_path, mask + " { [masked] s = Add(x, mask)\n [soft] y = Softmax(s) }", {"x": X}, TARGET)
    assert verdict.verdict == "rounding", verdict.summary


@pytest.mark.parametrize("names", [("onsets", "notes"), ("a_first", "b_second")])
def test_outputs_that_are_nan_alike_are_not_exchanged(tmp_path, names):
    """1e-10 is 0 in fp16: the logarithm of it is -Inf, and what is scaled by its range NaN, in both outputs alike."""
    one, other = names
    text = f"""g (float[4, 16] x) => (float[4, 16] {one}, float[4, 16] {other}) <float epsilon = {{1e-10}}> {{
        [square] p = Mul(x, x)
        [some] q = Add(p, epsilon)
        [level] l = Log(q)
        [low] m = ReduceMin <keepdims: int = 1> (l)
        [above] n = Sub(l, m)
        [first] {one} = Tanh(n)
        [second] {other} = Sigmoid(n)
    }}"""
    feed = {"x": np.where(np.arange(16) < 8, X, np.float32(0.0))}
    verdict, _ = ask(tmp_path, text, feed, TARGET)
    assert verdict.verdict == "range-overflow", verdict.summary
    assert verdict.culprits[0].node == "level"
    assert "constant 'epsilon' of Add 'some', of 1e-10 at most, becomes zero" in verdict.culprits[0].reason


def test_a_constant_that_vanishes_elsewhere_is_not_named(tmp_path):
    """0 / 0 of a row of zeros comes of the epsilon of its length, whatever else is 0 in fp16."""
    constants = "<int64[1] last = {1}, float length = {1e-12}, float other = {1e-9}>"
    text = f"""g (float[4, 16] x) => (float[4, 16] y, float[4, 16] z) {constants} {{
        [positive] r = Relu(x)
        [square] s = Mul(r, r)
        [add] t = ReduceSum <keepdims: int = 1> (s, last)
        [some] u = Add(t, length)
        [root] v = Sqrt(u)
        [even] y = Div(r, v)
        [none] z = Add(x, other)
    }}"""
    feed = {"x": np.where(np.arange(4)[:, np.newaxis] == 2, -np.abs(X), X).astype(np.float32)}
    verdict, _ = ask(tmp_path, text, feed, TARGET)
    assert (verdict.verdict, verdict.culprits[0].node) == ("range-overflow", "even"), verdict.summary
    assert "constant 'length' of Add 'some'" in verdict.culprits[0].reason
    assert "'other'" not in verdict.culprits[0].reason


ZEROS = """
import numpy as np


class Zeros:
    def compile(self, model_path, options):
        return self

    def run(self, feed):
        return {"y": np.zeros_like(feed["x"])}
"""


def test_a_sum_inside_an_op_that_leaves_the_format_is_named(tmp_path):
    """Squares of 400 add up to 16 * 160,000 in a row, beyond 65,504: the row over their root is 0, and never NaN."""
    model = helper.make_model(
        helper.make_graph(
            [
                helper.make_node(
                    "SkipSimplifiedLayerNormalization", ["x", "x", "gain"], ["y"], name="norm", domain=RUNTIME
                )
            ],
            "g",
            [helper.make_tensor_value_info("x", 1, [4, 16])],
            [helper.make_tensor_value_info("y", 1, [4, 16])],
            [numpy_helper.from_array(np.ones(16, np.float32), "gain")],
        ),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(RUNTIME, 1)],
        ir_version=8,
    )
    (tmp_path / "zeros.py").write_text(ZEROS)
    target = f"script:{tmp_path / 'zeros.py'}:Zeros,precision=fp16,hardware=gpu"
    verdict, _ = ask(tmp_path, model, {"x": 200 * X}, target)
    assert (verdict.verdict, verdict.exit_code) == ("range-overflow", 1), verdict.summary
    assert verdict.culprits[0].node == "norm"
    assert "a sum on the way to its result reaches" in verdict.culprits[0].reason
