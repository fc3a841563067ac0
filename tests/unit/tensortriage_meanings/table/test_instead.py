"""Operators in the place of their neighbours; expected values are those of numpy's functions."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of
from tensortriage_meanings.table.instead import INSTEAD

X = np.array([[-2, 1, 4], [1, 3, 1]], np.float32)


@pytest.mark.parametrize(
    ("call", "said", "expected"),
    [
        ("ReduceMean<axes=[1]>(x)", "it were ReduceSum", X.sum(1, keepdims=True)),
        ("ReduceL2<axes=[1]>(x)", "it were ReduceL1", np.abs(X).sum(1, keepdims=True)),
        ("Max(x, o)", "it were Min", np.minimum(X, 1)),
        ("Elu<alpha=2.0>(x)", "it were Celu", np.where(X < 0, 2 * (np.exp(X / 2) - 1), X)),
    ],
)
def test_a_neighbour_takes_the_inputs_and_the_attributes_that_it_has(call, said, expected):
    one = model(f"g (float[2,3] x) => (float[2,n] y) <float o = {{1}}> {{ y = {call} }}")
    assert run(meant(one, INSTEAD, said), x=X) == pytest.approx(expected, rel=1e-6)


def test_less_that_includes_equal_ones():
    one = model("g (float[2,3] x) => (bool[2,3] y) <float o = {1}> { y = Less(x, o) }")
    assert run(meant(one, INSTEAD, "it were LessOrEqual"), x=X).tolist() == (X <= 1).tolist()


def test_a_pool_that_gives_places_has_no_neighbour_that_does():
    one = model(
        "g (float[1,1,4] x) => (float[1,1,2] y, int64[1,1,2] i) { y, i = MaxPool<kernel_shape=[2], strides=[2]>(x) }"
    )
    assert not list(sites_of(Rewriter(one), INSTEAD))
