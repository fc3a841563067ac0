"""Which sets of ops are tried together."""

import hypothesis.strategies as st
from hypothesis import given

import models
from tensortriage.diagnose.measurements.windows import (
    SMALLEST_TILE,
    completed,
    disjoint,
    made_of_constants,
    multiple,
    neighbourhood,
    neighbours,
    tiles,
)
from tensortriage.engines.base import Plan, Region


@given(st.integers(2, 300), st.data())
def test_any_stretch_of_half_a_tile_lies_within_a_tile(count, data):
    nodes = [f"op_{i}" for i in range(count)]
    tried = list(tiles(nodes))
    for words, sets in tried:
        assert len({name for item in sets for name in item}) == sum(map(len, sets)), "sets of a round do not overlap"
        size = int(words.split()[2])
        length = data.draw(st.integers(2, max(2, size // 2)))
        start = data.draw(st.integers(0, max(0, count - length)))
        stretch = {*nodes[start : start + length]}
        same_size = [item for other, items in tried if other == words for item in items]
        assert len(stretch) < 2 or any(stretch <= {*item} for item in same_size)
    assert bool(tried) is (count > SMALLEST_TILE)


def test_a_neighbourhood_grows_both_ways_and_in_order():
    graph = models.branchy().graph
    every = [node.name for node in graph.nodes]
    assert neighbours(graph, "start") == {"left", "right", "side"}
    assert neighbourhood(graph, ["left"], 0, every) == ("left",)
    assert neighbourhood(graph, ["left"], 1, every) == ("start", "left", "join")
    assert neighbourhood(graph, ["left"], 2, every) == ("start", "left", "right", "join", "side")
    assert neighbourhood(graph, ["left"], 2, ["left", "join"]) == ("left", "join")


def test_regions_of_a_plan_are_those_of_several_known_ops_none_twice():
    plan = Plan((Region("a", ("one", "two")), Region("b", ("two", "three")), Region("c", ("four",))))
    assert list(multiple(plan, ["one", "two", "three", "four"])) == [("one", "two"), ("two", "three")]
    assert disjoint(multiple(plan, ["one", "two", "three"])) == [("one", "two")]
    assert list(multiple(plan, ["one", "three"])) == []


def test_a_set_has_what_makes_its_weights():
    """Without the dequantizer of its weight a Conv is one of floats, and its integer kernel is not what is tried."""
    graph = models.parse("""<ir_version: 8, opset_import: ["": 17]>
    g (float[2,2] x) => (float[2,2] z) <float[2,2] v = {1,2,3,4}, float s = {0.1}, int8[2,2] u = {1,2,3,4}> {
        [q] a = QuantizeLinear(v, s)
        [d] w = DequantizeLinear(a, s)
        [e] t = DequantizeLinear(u, s)
        [one] y = MatMul(x, w)
        [both] r = MatMul(y, t)
        [two] z = Add(r, w)
    }""").graph
    fixed = made_of_constants(graph)
    assert fixed == {"q", "d", "e"}
    assert completed(graph, [("one", "both"), ("two",)], fixed) == [("q", "d", "e", "one", "both"), ("two",)]
    assert completed(graph, [("one", "both")], {"d"}) == [("d", "one", "both")]
