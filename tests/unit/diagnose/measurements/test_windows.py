"""Which sets of ops are tried together."""

import hypothesis.strategies as st
from hypothesis import given

import models
from tensortriage.diagnose.measurements.windows import (
    SMALLEST_TILE,
    disjoint,
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
