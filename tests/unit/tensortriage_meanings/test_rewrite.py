"""A model is written again without being changed, and raised only where a way needs it."""

import numpy as np
import pytest

from meant_otherwise import model, run
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.site import Meaning

X = np.array([-2, 3], np.float32)
NET = "g (float[2] x) => (float[2] y) { [act] a = LeakyRelu<alpha=0.1>(x) [end] y = Neg(a) }"


def test_attributes_operands_and_bodies_are_written_and_the_model_stays():
    one = model(NET)
    ways = {"act": Meaning("", attributes={"alpha": 0.5}), "end": Meaning("", body="(v) => (w) { w = Abs(v) }")}
    assert run(Rewriter(one).rewritten(ways), x=X).tolist() == [1.0, 3.0]
    assert run(one, x=X) == pytest.approx([0.2, -3.0])
    added = model("g (float[2] x) => (float[2] y) <float c = {1}> { [sum] y = Add(x, c) }")
    ways = {"sum": Meaning("", operands={1: np.array(5, np.float32)})}
    assert run(Rewriter(added).rewritten(ways), x=X).tolist() == [3.0, 8.0]


def test_an_attribute_of_none_is_left_out():
    made = Rewriter(model(NET)).rewritten({"act": Meaning("", attributes={"alpha": None})})
    assert run(made, x=X) == pytest.approx([0.02, -3.0])  # LeakyRelu's own alpha is 0.01


def test_a_body_with_typed_constants_raises_an_older_model():
    body = "(v) => (w) { c = Constant<value_float=2.0>() d = CastLike(c, v) w = Mul(v, d) }"
    rewriter = Rewriter(model(NET, opset=13))
    made = rewriter.rewritten({"end": Meaning("", body=body)})
    assert made.opset >= 15
    assert run(made, x=X) == pytest.approx([-0.4, 6.0])
    assert rewriter.base(13) is rewriter.base(0)
    assert rewriter.base(15) is rewriter.base(15)


def test_inputs_are_exchanged_and_left_out_and_operators_renamed():
    one = model("g (float[2] x) => (float[2] y) <float c = {1}> { [end] y = Sub(x, c) }")
    assert run(Rewriter(one).rewritten({"end": Meaning("", inputs={0: 1, 1: 0})}), x=X).tolist() == [3.0, -2.0]
    assert run(Rewriter(one).rewritten({"end": Meaning("", op="Mul")}), x=X).tolist() == [-2.0, 3.0]
    sums = model("g (float[2] x) => (float[2] y) <float c = {1}> { [end] y = Sum(x, c, c) }")
    assert run(Rewriter(sums).rewritten({"end": Meaning("", inputs={2: None})}), x=X).tolist() == [-1.0, 4.0]
    act = Rewriter(model(NET)).rewritten({"act": Meaning("", op="Relu")})
    assert run(act, x=X).tolist() == [0.0, -3.0]


def test_another_value_takes_the_place_of_an_input_and_neighbours_trade_places():
    text = "g (float[2] x) => (float[2] y) <float c = {1}> { [n] a = Neg(x) [r] b = Relu(x) [end] y = Sub(a, b) }"
    assert run(Rewriter(model(text)).rewritten({"n": Meaning("", wired={0: "b"})}), x=X).tolist() == [0.0, -6.0]
    traded = Rewriter(model(NET)).rewritten({"act": Meaning("", behind="end")})
    assert run(traded, x=X) == pytest.approx([2.0, -0.3])  # LeakyRelu of -x


def test_a_way_that_leaves_no_place_for_another_is_an_error_and_no_crash():
    one = model("g (float[2] x, float[2] z) => (float[2] y) { [a] h = Relu(x) [b] y = Sub(h, z) }")
    ways = {"a": Meaning("behind", behind="b"), "b": Meaning("its operands exchanged", inputs={0: 1, 1: 0})}
    with pytest.raises(ValueError, match="not together: its operands exchanged"):
        Rewriter(one).rewritten(ways)
