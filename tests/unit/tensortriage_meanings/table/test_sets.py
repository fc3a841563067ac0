"""What is done wrongly in ops that are computed together; expected values come from numpy's functions."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of
from tensortriage_meanings.table.sets import SETS, STRETCHES

X = np.array([-2, -0.5, 0.25, 3], np.float32)
WEIGHTS = "<float[4] k = {1, -2, 3, -4}, float[4] h = {2, 5, -6, 0.5}>"


def net(body):
    return model(f"g (float[4] x) => (float[4] y) {WEIGHTS} {{ {body} }}")


K, H = np.array([1, -2, 3, -4]), np.array([2, 5, -6, 0.5])


@pytest.mark.parametrize(
    ("body", "said", "expected"),
    [
        ("[r] a = Relu(x) [s] y = Add(a, k)", "Add 's' came before it", np.maximum(X + K, 0)),
        ("[s] a = Sub(k, x) [r] y = Relu(a)", "Relu 'r' came before it", K - np.maximum(X, 0)),
        ("[s] a = Sub(k, x) [m] y = Div(h, a)", "Div 'm' came before it", K - H / X),
        ("[n] b = Neg(x) [s] a = Add(x, b) [r] y = Relu(a)", "on its input B", X + np.maximum(-X, 0)),
        ("[e] a = Exp(x) [n] b = Abs(x) [s] c = Sub(a, b) [m] y = Mul(c, b)", "'s' came", np.exp(X - abs(X)) * abs(X)),
        ("[s] a = Sub(x, k) [e] y = Exp(a)", "its input B had the other sign", np.exp(X + K)),
        ("[s] y = Mul(x, k)", "its result had the other sign", -X * K),
        ("[t] y = Tanh(x)", "computed twice", np.tanh(np.tanh(X))),
        ("[e] a = Exp(x) [s] y = Sub(a, x)", "in the place of its input A", np.exp(X) - X - X),
        ("[e] a = Exp(x) [s] y = Sub(a, x)", "in the place of its input B", X),
        ("[m] a = Mul(x, k) [s] y = Add(a, h)", "its input B were that of Mul 'm'", X * K + K),
        ("[m] a = Add(x, k) [e] b = Exp(a) [s] y = Add(b, h)", "of 'm' and input B of 's' were", np.exp(X + H) + K),
        ("[m] a = Mul(x, k) [s] y = Sub(h, a)", "input A of 's' and input B of 'm' were exchanged", K - H * X),
        (
            "[m] a = Add(x, k) [e] b = Exp(a) [s] y = Mul(a, b)",
            "its input input were 'x', not 'a'",
            (X + K) * np.exp(X),
        ),
        ("[e] a = Exp(x) [n] b = Abs(x) [s] y = Sub(b, a)", "its input X were 'a', not 'x'", 0 * X),
    ],
)
def test_a_way_computes_what_its_words_say(body, said, expected):
    assert run(net(body), x=X) != pytest.approx(np.asarray(expected, np.float32))
    assert run(meant(net(body), SETS, said), x=X) == pytest.approx(np.asarray(expected, np.float32), rel=1e-5)


def test_values_that_others_take_keep_their_order():
    both = model(f"g (float[4] x) => (float[4] y, float[4] a) {WEIGHTS} {{ [r] a = Relu(x) [s] y = Add(a, k) }}")
    twice = net("[r] a = Relu(x) [s] y = Mul(a, a)")
    for one in (both, twice):
        ways = [way for ways in sites_of(Rewriter(one), SETS) for way in ways.values()]
        assert ways
        assert not [way for way in ways if way.behind]


ROW = np.array([[-2, -0.5, 0.25, 3]], np.float32)
W = np.array([[1, 2, 0, 1, 3, -1], [0, 1, 1, 2, 0, 1], [2, 0, 1, 0, 1, 1], [1, 1, 0, -1, 2, 0]], np.float32)
NET = "g (float[1,4] x) => (float[1,4] y) <float[4,6] w = {{{}}}> {{ {} }}"


def stretch(body):
    return model(NET.format(", ".join(f"{number:g}" for number in W.ravel()), body))


@pytest.mark.parametrize(
    ("body", "said", "expected"),
    [
        (
            "[e] a = Exp(x) [m] h = MatMul(a, w) [t] t = Transpose(w) [n] b = MatMul(h, t) [s] y = Neg(b)",
            "its result were 'a'",
            np.exp(ROW),
        ),
        ("[e] a = Exp(x) [r] b = Relu(a) [t] c = Tanh(b) [s] y = Neg(c)", "its result were 'b'", np.exp(ROW)),
        ("[c] a = Cast<to=7>(x) [b] b = Cast<to=1>(a) [s] y = Neg(b)", "passed through as float", -ROW),
    ],
)
def test_what_lies_between_is_not_computed(body, said, expected):
    assert run(stretch(body), x=ROW) != pytest.approx(expected)
    rewriter = Rewriter(stretch(body))
    ways = [each for each in sites_of(rewriter, STRETCHES) if "s" in each or "c" in each]
    (way,) = (each for each in ways if said in next(iter(each.values())).words)
    assert run(rewriter.rewritten(way), x=ROW) == pytest.approx(expected, rel=1e-5)


def test_only_the_nearest_values_stand_for_a_result():
    body = "".join(f"[n{at}] v{at + 1} = Tanh({f'v{at}' if at else 'x'}) " for at in range(9))
    ways = list(sites_of(Rewriter(stretch(f"{body} [s] y = Neg(v9)")), STRETCHES))
    values = {way.wired[0] for group in ways for name, way in group.items() if name == "s"}
    assert values == {"v8", "v7", "v6"}


def test_what_an_op_takes_itself_is_a_matter_of_its_definition():
    assert not list(sites_of(Rewriter(stretch("[e] y = Exp(x)")), STRETCHES))


def test_a_cast_to_its_own_type_is_none():
    one = model("g (float[4] x) => (float[4] y) { y = Cast<to=1>(x) }")
    assert not list(sites_of(Rewriter(one), STRETCHES))
