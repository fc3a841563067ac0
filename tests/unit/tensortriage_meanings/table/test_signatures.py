"""Ways that come of an operator's definition alone; expected values come from ONNX's formulas, written with numpy."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from models import parse
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of
from tensortriage_meanings.table.signatures import SIGNATURES

X = np.array([[-2, -0.5, 0.25], [1, 3, 0.5]], np.float32)


def words(one):
    return [way.words for ways in sites_of(Rewriter(one), SIGNATURES) for way in ways.values()]


def net(call, constants="", opset=17, result="float[2,3]"):
    weights = f"<{constants}>" if constants else ""
    return model(f"g (float[2,3] x) => ({result} y) {weights} {{ y = {call} }}", opset=opset)


def exp(x, alpha):
    return np.where(x < 0, alpha * (np.exp(x) - 1), x)


@pytest.mark.parametrize(
    ("one", "said", "expected"),
    [
        (net("Elu<alpha=0.3>(x)"), "alpha were 1 (the default), not 0.3", exp(X, 1.0)),
        (net("Elu(x)"), "alpha were 0, not 1", exp(X, 0.0)),
        (net("ReduceL1<axes=[1]>(x)", result="float[a,b]"), "its attribute axes ([1]) were left out", [[7.25]]),
        (net("ReduceMax<axes=[0]>(x)", result="float[a,b]"), "axes were [1], not [0]", [[0.25], [3]]),
        (net("CumSum<reverse=1>(x, a)", "int64 a = {1}"), "reverse were 0", np.cumsum(X, 1)),
        (net("CumSum(x, a)", "int64 a = {1}"), "its input axis were [0], not 1", np.cumsum(X, 0)),
        (net("Clip(x, l, h)", "float l = {0}, float h = {1}"), "its input max were left out", np.maximum(X, 0)),
        (net("Max(x, a, b)", "float a = {0}, float b = {1}"), "its input 2 were left out", np.maximum(X, 0)),
        (net("Relu(x)"), "it were left out", X),
        (net("Mul(x, f)", "float f = {2}"), "its input B were left out: the result is its input A", X),
        (net("Sub(x, f)", "float f = {2}"), "its inputs A and B were exchanged", 2 - X),
        (net("Sub(f, x)", "float[3] f = {1,2,3}"), "its inputs A and B were exchanged", X - [1, 2, 3]),
        (net("Mul(x, f)", "float[3] f = {2,3,4}"), "the first number of its input B stood for all 3", 2 * X),
        (net("Mul(x, f)", "float[3] f = {2,3,4}"), "the numbers of its input B were reversed", X * [4, 3, 2]),
        (net("Pow(x, e)", "float e = {2.5}"), "its input Y were cut to a whole number (2, not 2.5)", X**2),
        (net("Clip(x, l, h)", "float l = {-0.7}, float h = {1.8}"), "inputs min and max were cut", np.clip(X, 0, 1)),
        (net("Elu<alpha=1.5>(x)"), "alpha were 1, cut to a whole number, not 1.5", exp(X, 1.0)),
        (net("Tile(x, r)", "int64[2] r = {1, 2}", result="float[a,b]"), "its input repeats were reversed",
         np.tile(X, (2, 1))),
    ],
)  # fmt: skip
def test_a_way_computes_what_its_words_say(one, said, expected):
    assert run(one, x=X).tolist() != np.asarray(expected, np.float32).tolist()
    assert run(meant(one, SIGNATURES, said), x=X) == pytest.approx(np.asarray(expected, np.float32), rel=1e-5)


def test_scales_and_zero_points_of_the_first_channel_alone_and_together():
    constants = "float[3] s = {1, 2, 4}, uint8[3] z = {10, 20, 30}"
    text = f"g (uint8[2,3] q) => (float[2,3] y) <{constants}> {{ y = DequantizeLinear<axis=1>(q, s, z) }}"
    q = np.array([[10, 20, 30], [40, 50, 60]], np.uint8)
    for said, scale, zero in (
        ("first number of its input x_scale", 1, [10, 20, 30]),
        ("first number of its input x_zero_point", [1, 2, 4], 10),
        ("first number of each of its inputs x_scale and x_zero_point", 1, 10),
        ("its input x_zero_point were left out", [1, 2, 4], 0),
    ):
        made = run(meant(model(text), SIGNATURES, said), q=q)
        assert made.tolist() == ((q.astype(np.float32) - zero) * scale).tolist()


def test_results_in_each_others_places():
    one = model("g (float[2,4] x) => (float[2,2] y, float[2,2] z) { y, z = Split<axis=1>(x) }", opset=13)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert run(meant(one, SIGNATURES, "its results 0 and 1 were exchanged"), x=x).tolist() == x[:, 2:].tolist()


def test_lists_by_axis_in_the_other_order():
    one = model("g (float[1,1,4,4] x) => (float[1,1,a,b] y) { y = MaxPool<kernel_shape=[1,2], strides=[1,2]>(x) }")
    assert run(one, x=np.zeros((1, 1, 4, 4), np.float32)).shape == (1, 1, 4, 2)
    assert run(meant(one, SIGNATURES, "strides were [2, 1]"), x=np.zeros((1, 1, 4, 4), np.float32)).shape == (
        1,
        1,
        2,
        3,
    )


def test_what_cannot_be_otherwise_is_not_tried():
    found = words(net("Add(x, x)"))
    assert not [each for each in found if "exchanged" in each]  # it is the same
    assert "group were 0, not 1" not in words(model("g (float[1,1,3] x, float[1,1,1] w) => (float[1,1,3] y) "
                                                    "{ y = Conv(x, w) }"))  # fmt: skip


def test_what_leaves_out_an_operator_explains_alone_only():
    ways = [way for each in sites_of(Rewriter(net("Relu(x)")), SIGNATURES) for way in each.values()]
    assert [way.alone for way in ways if "left out" in way.words] == [True]


def test_an_attribute_that_the_opset_does_not_have_is_not_tried():
    text = "ArgMax<axis=1>(x)"
    assert "select_last_index were 1, not 0" in words(net(text, result="int64[2,1]"))
    assert not [each for each in words(net(text, opset=11, result="int64[2,1]")) if "select_last_index" in each]


def test_operators_of_onnx_runtime_take_the_attributes_that_they_are_given():
    text = """g (float[1,4,8] x, int64[1,4] at, float[9,4] c, float[9,4] s) => (float[1,4,8] y) {
        y = com.microsoft.RotaryEmbedding<interleaved=1>(x, at, c, s) }"""
    made = parse(f'<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> {text}')
    assert "interleaved were 0, not 1" in words(made)
