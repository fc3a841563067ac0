"""The small moves: finding, naming, and what a node needs from outside."""

import pytest

import models
from tensortriage.errors import UsageError
from tensortriage.model.transforms.rewrite_helpers import (
    Names,
    find_nodes,
    find_values,
    nearest_name,
    outer_values,
    prune_initializers,
)


def test_nodes_are_found_in_topological_order():
    found = find_nodes(models.branchy(), ["join", "start", "left", "left"])
    assert [node.name for node in found] == ["start", "left", "join"]


def test_values_are_found_in_the_order_asked_for():
    model = models.mlp()
    assert list(find_values(model, ["y", "x", "w1"])) == ["y", "x", "w1"]
    with pytest.raises(UsageError) as caught:
        find_values(model, ["w3"])
    assert caught.value.slug == "value-unknown"
    assert "'w1'" in caught.value.cure


def test_cures():
    assert nearest_name("/layer.0/Gemn", ["/layer.0/Gemm", "z"]) == "did you mean '/layer.0/Gemm'?"
    assert "triage inspect model" in nearest_name("nothing like it", ["a", "b"])


def test_a_node_needs_its_inputs_and_the_captures_of_its_bodies():
    (choice,) = find_nodes(models.with_if(), ["choice"])
    assert [value.name for value in outer_values(choice)] == ["c", "a", "w", "x"]
    (loop,) = find_nodes(models.with_loop(), ["loop"])
    assert [value.name for value in outer_values(loop)] == ["turns", "start", "x", "step"]


def test_fresh_names_avoid_those_inside_bodies():
    names = Names(models.with_if().ir.graph)
    assert names.fresh("t") == "t_2"
    assert names.fresh("scaled") == "scaled_2"
    assert (names.fresh("new"), names.fresh("new"), names.fresh("new")) == ("new", "new_2", "new_3")


def test_only_unused_initializers_are_pruned():
    model = models.with_if()
    prune_initializers(model.ir.graph)
    assert list(model.ir.graph.initializers) == ["w"]
    model.ir.graph.remove(find_nodes(model, ["choice"])[0])
    prune_initializers(model.ir.graph)
    assert list(model.ir.graph.initializers) == []
