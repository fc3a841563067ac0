"""Which node is which, whatever their names: what stands before and behind it, then its name, then its neighbours."""

import models
from tensortriage.model.similarity.node_matching import (
    Side,
    align_interface,
    counterpart_of,
    is_beside_unpaired,
    match,
    values_at,
)

HEADER = "g (float[2, 4] x) => (float[2, 4] y) "
REFERENCE = HEADER + "{ [first] a = Relu(x) [second] b = Sigmoid(a) [third] c = Tanh(b) [last] y = Neg(c) }"


def sides(reference, target):
    left, right = Side(models.parse(reference).ir), Side(models.parse(target).ir)
    align_interface(left, right)
    return left, right


def pairs(reference, target):
    found = match(*sides(reference, target))
    return {node.name: other.name for node, other in found.items()}


def test_a_change_in_the_middle_of_a_renamed_graph_leaves_one_node_to_its_neighbours():
    target = HEADER + "{ [n9] p = Relu(x) [n8] q = Erf(p) [n7] r = Tanh(q) [n6] y = Neg(r) }"
    assert pairs(REFERENCE, target) == {"first": "n9", "second": "n8", "third": "n7", "last": "n6"}


def test_an_added_and_a_removed_node_have_no_counterpart():
    more = HEADER + "{ [a0] p = Relu(x) [new] n = Abs(p) [b0] q = Sigmoid(n) [c0] r = Tanh(q) [d0] y = Neg(r) }"
    assert pairs(REFERENCE, more) == {"first": "a0", "second": "b0", "third": "c0", "last": "d0"}
    assert pairs(more, REFERENCE) == {"a0": "first", "b0": "second", "c0": "third", "d0": "last"}


def test_of_equal_nodes_those_of_equal_name_are_paired_and_the_others_in_order():
    two = HEADER + "{ [one] a = Relu(x) [two] b = Relu(x) y = Add(a, b) }"
    swapped = HEADER + "{ [two] a = Relu(x) [else] b = Relu(x) y = Add(a, b) }"
    assert {name: pairs(two, swapped)[name] for name in ("one", "two")} == {"one": "else", "two": "two"}


def test_a_constant_counts_by_content_and_not_by_how_it_is_stored():
    stored = HEADER + "<float[1] w = {2.0}> { [n] y = Mul(x, w) }"
    node = HEADER + "{ c = Constant <value = float[1] {2.0}> () [m] y = Mul(x, c) }"
    left, right = sides(stored, node)
    assert [value.name for value in left.nodes[0].outputs] == ["y"]
    assert left.prefix_hashes()[left.nodes[0]] == right.prefix_hashes()[right.nodes[0]]
    other = sides(stored, node.replace("2.0", "3.0"))[1]
    assert left.prefix_hashes()[left.nodes[0]] != other.prefix_hashes()[other.nodes[0]]


def test_inputs_and_outputs_correspond_by_name_and_else_in_order():
    left = Side(models.parse("g (float[1] a, float[1] b) => (float[1] y) { y = Sub(a, b) }").ir)
    right = Side(models.parse("g (float[1] b, float[1] z) => (float[1] out) { out = Sub(z, b) }").ir)
    found = [(one.name, other.name) for one, other in align_interface(left, right)]
    assert sorted(found) == [("a", "z"), ("b", "b"), ("y", "out")]
    assert len(match(left, right)) == 1
    third = Side(models.parse("g (float[1] b, float[1] z) => (float[1] out) { out = Sub(b, z) }").ir)
    align_interface(left, third)
    assert left.prefix_hashes()[left.nodes[0]] not in third.prefix_hashes().values()


def test_the_value_at_the_same_place_is_found_and_what_an_added_node_reads_is_no_news():
    more = HEADER + "{ [a0] p = Relu(x) [new] n = Abs(p) [b0] q = Sigmoid(n) [c0] r = Tanh(q) [d0] y = Neg(r) }"
    left, right = sides(REFERENCE, more)
    found = match(left, right)
    first, second = left.nodes[:2]
    new, after = right.nodes[1:3]
    assert counterpart_of(first.outputs[0], left, right, found).name == "p"
    assert counterpart_of(first.inputs[0], left, right, found).name == "x"
    assert is_beside_unpaired(second.inputs[0], after.inputs[0], found)
    assert not is_beside_unpaired(first.inputs[0], right.nodes[0].inputs[0], found)
    names = {new_value.name: old.name for new_value, old in values_at(left, right, found).items()}
    assert names == {"x": "x", "n": "a", "q": "b", "r": "c", "y": "y"}
    assert new not in found.values()
