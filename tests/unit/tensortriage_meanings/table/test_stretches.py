"""Operators that are not computed; expected values come from numpy's functions."""

import numpy as np
import pytest

from meant_otherwise import model, run
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of
from tensortriage_meanings.table.stretches import STRETCHES

X = np.array([[-2, -0.5, 0.25, 3]], np.float32)
W = np.array([[1, 2, 0, 1, 3, -1], [0, 1, 1, 2, 0, 1], [2, 0, 1, 0, 1, 1], [1, 1, 0, -1, 2, 0]], np.float32)
NET = "g (float[1,4] x) => (float[1,4] y) <float[4,6] w = {{{}}}> {{ {} }}"


def net(body):
    return model(NET.format(", ".join(f"{number:g}" for number in W.ravel()), body))


@pytest.mark.parametrize(
    ("body", "said", "expected"),
    [
        (
            "[e] a = Exp(x) [m] h = MatMul(a, w) [t] t = Transpose(w) [n] b = MatMul(h, t) [s] y = Neg(b)",
            "its result were 'a'",
            np.exp(X),
        ),
        ("[e] a = Exp(x) [r] b = Relu(a) [t] c = Tanh(b) [s] y = Neg(c)", "its result were 'b'", np.exp(X)),
        ("[c] a = Cast<to=7>(x) [b] b = Cast<to=1>(a) [s] y = Neg(b)", "passed through as float", -X),
    ],
)
def test_a_way_computes_what_its_words_say(body, said, expected):
    assert run(net(body), x=X) != pytest.approx(expected)
    rewriter = Rewriter(net(body))
    ways = [each for each in sites_of(rewriter, STRETCHES) if "s" in each or "c" in each]
    (way,) = (each for each in ways if said in next(iter(each.values())).words)
    assert run(rewriter.rewritten(way), x=X) == pytest.approx(expected, rel=1e-5)


def test_only_the_nearest_values_stand_for_a_result():
    body = "".join(f"[n{at}] v{at + 1} = Tanh({f'v{at}' if at else 'x'}) " for at in range(9))
    ways = list(sites_of(Rewriter(net(f"{body} [s] y = Neg(v9)")), STRETCHES))
    values = {way.wired[0] for group in ways for name, way in group.items() if name == "s"}
    assert values == {"v8", "v7", "v6"}


def test_what_an_op_takes_itself_is_a_matter_of_its_definition():
    assert not list(sites_of(Rewriter(net("[e] y = Exp(x)")), STRETCHES))


def test_a_cast_to_its_own_type_is_none():
    one = model("g (float[4] x) => (float[4] y) { y = Cast<to=1>(x) }")
    assert not list(sites_of(Rewriter(one), STRETCHES))
