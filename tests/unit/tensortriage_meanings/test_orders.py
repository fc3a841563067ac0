"""Orders of axes that are read off numbers; the numbers are numpy's reshaped and transposed arrays."""

import numpy as np
import pytest

from meant_otherwise import model, run
from tensortriage_meanings.orders import order_of, order_ways
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.site import MeantNode

RNG = np.random.default_rng(5)
A = RNG.standard_normal((2, 12, 4, 6)).astype(np.float32)


def three_steps(array, sizes, perm, shape):
    return np.ascontiguousarray(array.reshape(sizes).transpose(perm).reshape(shape))


STEPS = {
    "blocks": ((2, 3, 2, 2, 4, 6), (0, 1, 4, 2, 5, 3), (2, 3, 8, 12)),
    "the block before the depth": ((2, 2, 2, 3, 4, 6), (0, 1, 4, 2, 5, 3), (2, 3, 8, 12)),
    "shuffled channels": ((2, 3, 4, 24), (0, 2, 1, 3), (2, 12, 4, 6)),
    "windows": ((2, 12, 2, 2, 3, 2), (0, 2, 4, 3, 5, 1), (12, 4, 12)),
    "channels last": ((2, 12, 24), (0, 2, 1), (2, 288)),
    "columns": ((24, 24), (1, 0), (24, 24)),
}


@pytest.mark.parametrize("name", STEPS)
def test_three_steps_are_told_by_their_numbers(name):
    sizes, perm, shape = STEPS[name]
    made = three_steps(A, sizes, perm, shape)
    found = order_of(A, made)
    assert found is not None
    assert found.moves
    assert np.array_equal(found.of(A), made)
    assert np.array_equal(found.of(np.arange(A.size)), three_steps(np.arange(A.size), sizes, perm, shape))


@pytest.mark.parametrize("name", STEPS)
def test_numbers_that_occur_often_tell_nothing_and_do_no_harm(name):
    """As behind a Relu, where half of the numbers are 0."""
    sizes, perm, shape = STEPS[name]
    made = three_steps(np.maximum(A, 0), sizes, perm, shape)
    found = order_of(np.maximum(A, 0), made)
    if found is not None:  # steps that no axis of the result has by itself need neighbours that are known
        assert np.array_equal(found.of(np.arange(A.size)), three_steps(np.arange(A.size), sizes, perm, shape))


def test_a_reshape_moves_nothing():
    found = order_of(A, A.reshape(24, 24))
    assert found is not None
    assert not found.moves
    assert found.words == "reshaped with its numbers in the order in which they lie"


@pytest.mark.parametrize(
    "made",
    [RNG.permutation(A.ravel()).reshape(A.shape), np.sort(A, 1), A[:, RNG.permutation(12)], A + np.float32(1),
     A[:, ::-1], A[:, :6], np.roll(A, 1, 1), A.astype(np.float64)],
)  # fmt: skip
def test_other_numbers_are_no_order_of_axes(made):
    assert order_of(A, made) is None


def told(text, result, opset=17, **known):
    one = model(f"g (float[2,12,4,6] x) => (float[2,3,8,12] y) {{ [n] y = {text} }}", opset=opset)
    (node,) = one.ir.graph
    ways = list(order_ways(MeantNode(node, opset, {}), result, run(one, x=A), known))
    for way in ways:
        assert np.array_equal(run(Rewriter(one).rewritten({"n": way}), x=A), result)
    return [way.words for way in ways]


def test_what_an_operator_does_is_told_beside_what_it_was_taken_for():
    text = 'DepthToSpace<blocksize=2, mode="CRD">(x)'
    assert told(text, three_steps(A, *STEPS["the block before the depth"]), x=A) == [
        "its input input were reshaped to [2, 2, 2, 3, 4, 6], its axes put in the order [0, 1, 4, 2, 5, 3], not "
        "reshaped to [2, 3, 2, 2, 4, 6], its axes put in the order [0, 1, 4, 2, 5, 3]"
    ]
    assert told(text, three_steps(A, *STEPS["blocks"]), x=A) == []


def test_a_result_in_the_other_layout_is_put_in_another_order():
    one = model("g (float[2,12,4,6] x) => (float[2,12,4,6] y) { [n] y = Tanh(x) }")
    (node,) = one.ir.graph
    right = run(one, x=A)
    last = np.ascontiguousarray(right.transpose(0, 2, 3, 1)).reshape(right.shape)
    (way,) = order_ways(MeantNode(node, 17, {}), last, right, {"x": A})
    order = "[2, 12, 24], its axes put in the order [0, 2, 1]"
    assert way.words == f"its result were reshaped to {order}, and reshaped back"
    assert np.array_equal(run(Rewriter(one).rewritten({"n": way}), x=A), last)
