from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import models


def names_of(given_names):
    values = [f"v{i}" for i in range(len(given_names) + 1)]
    nodes = [
        helper.make_node("Relu", [values[i]], [values[i + 1]], name=name or None) for i, name in enumerate(given_names)
    ]
    model = models.of_nodes(nodes, inputs={values[0]: (1,)}, outputs={values[-1]: (1,)})
    return [node.name for node in model.graph.nodes]


def test_unnamed_and_repeated_nodes_get_names():
    assert names_of(["", "a", "a", "", "Relu_0"]) == ["Relu_0_2", "a", "Relu_2", "Relu_3", "Relu_0"]


@given(st.lists(st.sampled_from(["", "a", "b", "Relu_0", "Relu_1", "Relu_1_2", "Relu_3"]), min_size=1, max_size=8))
def test_names_are_unique_stable_and_keep_what_was_unique(given_names):
    names = names_of(given_names)
    assert len(set(names)) == len(names)
    assert "" not in names
    assert names_of(names) == names
    for name in filter(None, given_names):
        assert names[given_names.index(name)] == name
