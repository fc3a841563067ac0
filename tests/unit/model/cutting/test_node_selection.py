import pytest
from onnx import helper

import models
from tensortriage.errors import UsageError
from tensortriage.model.cutting.node_selection import NodeChoice, choose_nodes


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
