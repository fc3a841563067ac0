"""Nodes that only hand numbers on are kept exactly on ways between kept nodes."""

import pytest

from models import parse
from tensortriage.precision.selection.pass_through_nodes import Islands

MODEL = """
    g (float[2,2] x) => (float[2,2] y, float[2,2] z) {
        [enter] a = Transpose(x)
        [first] b = Exp(a)
        [pass1] c = Transpose(b)
        [pass2] d = Relu(c)
        [second] e = Sqrt(d)
        [side] f = Neg(d)
        [third] y = Tanh(f)
        [leave] z = Transpose(e)
    }"""


@pytest.mark.parametrize(
    ("kept", "carriers"),
    [
        ([], []),
        (["first"], ["enter"]),
        (["second"], ["leave"]),
        (["third"], []),
        (["first", "second"], ["enter", "pass1", "pass2", "leave"]),
        (["first", "third"], ["enter", "pass1", "pass2", "side"]),
    ],
)
def test_carriers(kept, carriers):
    model = parse(MODEL)
    nodes = frozenset(node.name for node in model.graph.nodes)
    rounding = frozenset({"first", "second", "third"})
    assert Islands(model, nodes, rounding).carriers(kept) == set(carriers)


def test_what_the_format_cannot_express_is_a_neighbour_like_a_kept_node():
    model = parse(MODEL)
    nodes = frozenset(node.name for node in model.graph.nodes) - {"second"}
    islands = Islands(model, nodes, frozenset({"first", "third"}))
    assert islands.carriers(["first"]) == {"enter", "pass1", "pass2", "leave"}
