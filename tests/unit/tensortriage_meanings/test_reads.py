"""Where wrong operands were read from; the reads are numpy's views and copies."""

import numpy as np
import pytest

from meant_otherwise import model
from tensortriage_meanings.reads import read_of, read_ways
from tensortriage_meanings.site import MeantNode

RNG = np.random.default_rng(2)
A = RNG.standard_normal((1, 6, 4, 5)).astype(np.float32)
NHWC = A.transpose(0, 2, 3, 1)
DENSE = NHWC.ravel()[3:63].reshape(1, 4, 5, 3).transpose(0, 3, 1, 2)


def noisy(array):
    return array + 1e-7 * RNG.standard_normal(array.shape)


@pytest.mark.parametrize(
    ("made", "order", "start", "steps"),
    [
        (A[:, 3:], (0, 1, 2, 3), 60, (0, 20, 5, 1)),
        (A[:, ::-1], (0, 1, 2, 3), 100, (0, -20, 5, 1)),
        (A.transpose(0, 1, 3, 2), (0, 1, 2, 3), 0, (0, 20, 1, 5)),
        (np.broadcast_to(A[:, :1], A.shape), (0, 1, 2, 3), 0, (0, 0, 5, 1)),
        (A.ravel()[7:55].reshape(6, 8), (0, 1, 2, 3), 7, (8, 1)),
        (DENSE, (0, 2, 3, 1), 3, (0, 1, 15, 3)),
    ],
)
def test_reads_are_told_by_their_steps(made, order, start, steps):
    found = read_of(A, noisy(made))
    assert found is not None
    assert (found.order, found.start, found.steps) == (order, start, steps)
    assert np.array_equal(found.array, made)


@pytest.mark.parametrize(
    "made",
    [RNG.standard_normal(A.shape), np.maximum(A, 0), np.roll(A, 1, 3), 1.01 * A, np.zeros_like(A), A[:, :1, :1, :1]],
)
def test_other_numbers_are_no_read(made):
    assert read_of(A, np.asarray(made, np.float64)) is None


def ways(text, result, **known):
    one = model(f"g (float[1,3,4,5] p, float[1,3,4,5] q) => (float y) {{ [n] y = {text} }}")
    (node,) = one.ir.graph
    return [way.words for way in read_ways(MeantNode(node, 17, {}), result.astype(np.float32), known)]


P, Q = A[:, 3:], np.tanh(A[:, :3])


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("Add(p, q)", lambda p: p + Q),
        ("Sub(p, q)", lambda p: p - Q),
        ("Sub(q, p)", lambda p: Q - p),
        ("Mul(p, q)", lambda p: p * Q),
        ("Div(p, q)", lambda p: p / Q),
        ("Div(q, p)", lambda p: Q / p),
        ("Concat<axis=1>(q, p)", lambda p: np.concatenate([Q, p], 1)),
    ],
)
def test_an_operand_is_what_the_others_leave_of_the_result(text, function):
    known = {"a": A, "p": P, "q": Q}
    assert ways(text, function(P), **known) == []
    (told,) = ways(text, function(DENSE), **known)
    assert "other elements of 'a', as if that view of it were dense: from element 3 of its memory" in told
    (told,) = ways(text, function(A[:, 1:4]), **known)
    assert told.endswith("other elements of 'a', from element 20 of its memory on, not from 60 on")


def test_a_part_that_is_never_written_and_a_result_that_is_another_tensor():
    nothing = np.concatenate([Q, np.zeros_like(P)], 1)
    assert ways("Concat<axis=1>(q, p)", nothing, p=P, q=Q) == [
        "its input 1 were 0 everywhere (memory that is never written)"
    ]
    assert "its result were 'z', another tensor" in ways("Add(p, q)", A[:, 2:5], p=P, q=Q, z=A[:, 2:5])


def test_an_operand_without_elements_is_read_nowhere_else():
    """As of the first step of a decoder, whose past is empty."""
    one = model("g (float[0,4] past, float[3,4] x) => (float[3,4] y) { y = Concat<axis=0>(past, x) }")
    known = {"past": np.zeros((0, 4), np.float32), "x": RNG.standard_normal((3, 4)).astype(np.float32)}
    site = MeantNode(next(iter(one.ir.graph)), one.opset, {})
    assert not [way for way in read_ways(site, np.roll(known["x"], 1, 0) + np.float32(1), known) if "past" in way.words]
