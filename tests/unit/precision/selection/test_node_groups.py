"""What belongs together: fused regions of a plan, residual streams of a graph, and what follows for sets of nodes."""

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tensortriage.engines.base import Plan, Region
from tensortriage.model.model import Model
from tensortriage.precision.selection.node_groups import Groups, fused_nodes, groups_of, residual_streams

ITEMS = tuple("abcdefgh")


def graph_of(tmp_path, *nodes):
    made = [helper.make_node(op, ins, [out], name=out.upper()) for op, ins, out in nodes]
    io = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in ("x", nodes[-1][2])]
    onnx.save(helper.make_model(helper.make_graph(made, "g", io[:1], io[1:])), tmp_path / "m.onnx")
    return Model.load(tmp_path / "m.onnx").graph


def test_a_residual_stream_is_its_adds(tmp_path):
    """Pre-norm: s1 = e + f(e), s2 = s1 + g(s1); h1 + h2, of which neither is made of the other, is no stream."""
    graph = graph_of(
        tmp_path,
        ("Add", ["x", "x"], "e"), ("Relu", ["e"], "f"), ("Add", ["e", "f"], "s1"),
        ("Tanh", ["s1"], "h1"), ("Relu", ["s1"], "h2"), ("Add", ["h1", "h2"], "g"), ("Add", ["g", "s1"], "s2"),
    )  # fmt: skip
    assert residual_streams(graph) == [("E", "S1", "S2")]


def test_a_stream_that_is_normalised_between_adds_is_none(tmp_path):
    graph = graph_of(
        tmp_path,
        ("Softmax", ["x"], "n0"), ("Relu", ["n0"], "f"), ("Add", ["n0", "f"], "s1"),
        ("Softmax", ["s1"], "n1"), ("Relu", ["n1"], "g"), ("Add", ["g", "n1"], "s2"),
    )  # fmt: skip
    assert residual_streams(graph) == []


def test_regions_name_nodes_or_values(tmp_path):
    graph = graph_of(tmp_path, ("Relu", ["x"], "a"), ("Tanh", ["a"], "b"))
    plan = Plan((Region("r", ("A", "b")), Region("own", ("cast::x",))))
    assert fused_nodes(plan, graph) == (("A", "B"), ("cast::x",))


def test_what_is_a_group(tmp_path):
    """No region of nearly all nodes, of one, or of none to choose from; one that only hands numbers on may be in it."""
    graph = graph_of(tmp_path, *(("Relu", [made], out) for made, out in zip("xabcdefgh", "abcdefghi", strict=True)))
    regions = [set("ABCDEFG"), {"A", "B"}, {"H", "elsewhere"}, {"C", "I"}, {"I", "J"}]
    found = groups_of(graph, tuple("ABCDEFGH"), {"I", "J"}, regions)
    assert found.sets == (frozenset("AB"), frozenset("CI"))
    assert found.items == tuple("ABCDEFGHI")


def test_closing_adds_the_rest_of_groups_behind():
    groups = Groups(ITEMS, (frozenset("abc"), frozenset("cf")))
    assert groups.closed(["c"]) == ["c", "a", "b", "f"]
    assert groups.closed(["h", "a"]) == ["h", "a", "b", "c"]
    assert groups.closed(["h"]) == ["h"]


@given(st.lists(st.frozensets(st.sampled_from(ITEMS), min_size=2), max_size=4))
def test_units_split_the_nodes_and_no_group(sets):
    units = Groups(ITEMS, tuple(sets)).units()
    assert sorted(node for unit in units for node in unit) == list(ITEMS)
    assert all(any(group <= set(unit) for unit in units) for group in sets)


@pytest.mark.parametrize("sets", [(), (frozenset("ab"), frozenset("bc"))])
def test_nodes_without_a_group_stand_alone(sets):
    units = Groups(ITEMS, sets).units()
    assert ("h",) in units
    assert len(units) == (8 if not sets else 6)
