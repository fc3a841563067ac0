"""Sets of ops measured as one piece: which ends are wrong, and into how many models they go."""

import numpy as np
import pytest

from models import branchy
from tensortriage.diagnose.measurements.local_errors.wired_ops import (
    Wired,
    apart,
    in_memory,
    inner_values,
    measure_wired,
    pieces,
    runnable,
    wrong_ends,
)

MODEL = """g (float[2, 3] x) => (float[2, 3] y, float[3, 2] z) {
    [start] a = Abs(x)
    [left] b = Tanh(a)
    [right] c = Neg(a)
    [join] y = Add(b, c)
    [side] z = Transpose <perm = [1, 0]> (a)
}"""
X = np.float32([[0.1, 0.2, 0.3], [0.4, -0.5, 0.6]])
SETS = [("start", "left"), ("right", "join"), ("side",)]
FAULT = "faulty:kind=scale,node=left,amount=1.5,fused_with=start"


def test_a_fault_of_a_fusion_shows_in_the_piece_that_holds_it_all(investigate):
    inv = investigate(MODEL, {"x": X}, target=FAULT)
    feed = inv.question.feeds[0]
    found = measure_wired(inv, feed, SETS, what="pieces")
    assert [item.nodes for item in found] == SETS
    assert [item.wrong for item in found] == [True, False, False]
    assert found[0].errors == {"b": pytest.approx(0.5, rel=1e-6)}  # what was planted
    assert found[0].ratio > 1000
    assert (found[1].errors, found[1].taken) == ({}, {})
    alone = measure_wired(inv, feed, [("start",), ("left",)], what="single ops")
    assert not any(item.wrong for item in alone)


def test_what_the_target_makes_at_wrong_ends_is_had_to_be_injected(investigate):
    inv = investigate(MODEL, {"x": X}, target=FAULT)
    wrong = Wired(("start", "left"), {"b": 0.5}, 1e6)
    overlapping = Wired(("left", "join"), {"y": 0.5}, 1e6)
    found = wrong_ends(inv, inv.question.feeds[0], [wrong, overlapping])
    assert set(found) == {"b", "y"}
    np.testing.assert_allclose(found["b"], 1.5 * np.tanh(np.abs(X)), rtol=1e-6)
    np.testing.assert_allclose(found["y"], np.tanh(np.abs(X)) - np.abs(X), atol=1e-7)  # left is not fused there
    assert set(wrong_ends(inv, inv.question.feeds[0], [Wired(("start", "left"), {}, 0.0)])) == set()


def test_another_shape_is_infinitely_wrong_and_not_injected(investigate):
    inv = investigate(MODEL, {"x": X}, target="faulty:kind=shape,node=side")
    (found,) = measure_wired(inv, inv.question.feeds[0], [("start", "side")], what="a piece")
    assert (found.errors, found.wrong) == ({"z": np.inf}, True)
    assert wrong_ends(inv, inv.question.feeds[0], [found]) == {}


def test_sets_share_a_model_as_far_as_memory_allows(investigate):
    """A set of one op here has 48 bytes of golden tensors: its operand and its result; that of x is none."""
    single = [("left",), ("right",), ("side",)]
    for limit, groups in ((None, [single]), (3 * 144, [single]), (3 * 96, [single[:2], single[2:]]), (3, "each")):
        inv = investigate(MODEL, {"x": X}, batch_bytes=limit)
        expected = [[one] for one in single] if groups == "each" else groups
        assert in_memory(inv, inv.golden.of(inv.question.feeds[0]), single) == expected
    assert in_memory(inv, inv.golden.of(inv.question.feeds[0]), []) == []
    found = measure_wired(inv, inv.question.feeds[0], SETS, what="pieces")
    assert [item.nodes for item in found] == SETS


def test_every_node_with_golden_operands_can_be_run(investigate):
    inv = investigate(MODEL, {"x": X})
    assert runnable(inv, inv.question.feeds[0]) == ("start", "left", "right", "join", "side")


def test_a_value_belongs_to_the_operators_of_its_set(investigate):
    of = pieces(investigate(MODEL, {"x": X}), SETS)
    assert (of("b"), of("z"), of("x")) == ({"Abs", "Tanh"}, {"Transpose"}, frozenset())


def test_sets_that_overlap_go_into_different_models():
    sets = [Wired(nodes, {}, 0.0) for nodes in (("a", "b"), ("b", "c"), ("c", "d"))]
    assert [[item.nodes for item in group] for group in apart(sets)] == [[("a", "b"), ("c", "d")], [("b", "c")]]


def test_inner_values_are_those_between_the_ops():
    graph = branchy().graph
    assert inner_values(graph, ["start", "left", "join"]) == ("a", "b")
    assert inner_values(graph, ["left", "side"]) == ()
