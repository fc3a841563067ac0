import pytest
from onnx import helper

import models
from tensortriage.errors import UsageError
from tensortriage.model.cutting.node_selection import Dangling, NodeChoice, choose_nodes, nodes_between


def graph():
    names = ["/enc/layer.0/mm", "/enc/layer.0/act", "/enc/layer.1/mm", "/enc/layer.10/mm", "/head/mm"]
    nodes = [
        helper.make_node("Relu" if "act" in name else "Neg", [f"v{i}"], [f"v{i + 1}"], name=name)
        for i, name in enumerate(names)
    ]
    return models.of_nodes(nodes, inputs={"v0": (2,)}, outputs={"v5": (2,)}).graph


@pytest.mark.parametrize(
    ("choice", "picked"),
    [
        ({"names": ["/head/mm"]}, [4]),
        ({"names": ["/enc/*/mm"]}, [0, 2, 3]),
        ({"names": ["enc.layer.0"]}, [0, 1]),
        ({"names": ["enc.layer.1*"]}, [2, 3]),
        ({"scopes": ["enc.layer.?"]}, [0, 1, 2]),
        ({"ranges": [("/enc/layer.0/act", "/enc/layer.10/mm")]}, [1, 2, 3]),
        ({"ranges": [("1", "2"), ("4", "4")]}, [1, 2, 4]),
        ({"op_types": ["relu"]}, [1]),
        ({"scopes": ["enc/layer.1"]}, [2]),
        ({"scopes": ["enc.layer.1"]}, [2]),
        ({"scopes": ["/enc"]}, [0, 1, 2, 3]),
        ({"scopes": ["head"], "names": ["/enc/layer.0/mm"]}, [0, 4]),
    ],
)
def test_choosing(choice, picked):
    found = graph()
    assert choose_nodes(found, NodeChoice(**choice)) == tuple(found.nodes[i].name for i in picked)


@pytest.mark.parametrize(
    ("choice", "slug", "cure"),
    [
        ({"names": ["/head/mn"]}, "node-unknown", "'/head/mm'"),
        ({"names": ["enc.layer.2"]}, "node-unknown", "'enc.layer.1'"),
        ({"ranges": [("3", "2")]}, "node-range-empty", "earlier"),
        ({"ranges": [("0", "5")]}, "node-unknown", "0 to 4"),
        ({"op_types": ["Rleu"]}, "op-type-unknown", "'Relu'"),
        ({"scopes": ["enc.layer.2"]}, "scope-unknown", "enc.layer.1"),
    ],
)
def test_what_matches_nothing_is_an_error(choice, slug, cure):
    with pytest.raises(UsageError) as caught:
        choose_nodes(graph(), NodeChoice(**choice))
    assert caught.value.slug == slug
    assert cure in caught.value.cure


def test_a_choice_of_nothing_is_false():
    assert not NodeChoice()
    assert NodeChoice(op_types=["Neg"])


JOINED = """
    g (float[2] x, float[2] m) => (float[2] y, float[2] z) <float[2] w = {1, 2}> {
        [a] a = Neg(x) [k] k = Exp(w) [b] b = Mul(a, k)
        [p] p = Sqrt(m) [q] q = Neg(p) [j] j = Add(b, q) [y] y = Exp(j) [z] z = Abs(p)
    }"""


def test_what_lies_between_values_includes_constants():
    found = models.parse(JOINED).graph
    assert nodes_between(found, ["x", "m"], ["y"])[0] == ("a", "k", "b", "p", "q", "j", "y")
    assert nodes_between(found, ["a", "q"], ["y"]) == (("k", "b", "j", "y"), ())
    assert nodes_between(found, ["a"], ["b"]) == (("k", "b"), ())


def test_branches_from_elsewhere_are_found_where_they_enter():
    found = models.parse(JOINED).graph
    assert nodes_between(found, ["a"], ["y"])[1] == (Dangling("q", "j", ("m",)),)
    assert nodes_between(found, ["a"], ["y", "z"])[1] == (Dangling("q", "j", ("m",)), Dangling("z", "z", ("m",)))
    assert nodes_between(found, ["p"], ["y"])[1] == (Dangling("b", "j", ("x",)),)


def test_captures_of_bodies_count():
    found = models.with_loop().graph
    assert nodes_between(found, ["step"], ["y"])[1] == (Dangling("x", "loop", ("x",)),)
    assert nodes_between(found, ["step", "x"], ["y"]) == (("loop",), ())
