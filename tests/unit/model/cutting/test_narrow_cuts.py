"""Are blocks cut where little is alive, as large as they may be, and is every node in one of them?"""

import pytest

from models import of_message, parse
from tensortriage.model.cutting.narrow_cuts import blocks_of, largest_weight, weights_bytes
from tensortriage.model.ir.graph import Graph
from tensortriage_testing.models import encoder

LAYER = "[left{n}] l{n} = MatMul({x}, w{n}) [right{n}] r{n} = Relu({x}) [out{n}] x{n} = Add(l{n}, r{n}) "
WEIGHT = 4 * 4 * 4
"""Bytes of a layer's weight."""


def layers(count, *, x="x"):
    weights = ", ".join(f"float[4, 4] w{n} = {{{', '.join(['1'] * 16)}}}" for n in range(count))
    nodes = "".join(LAYER.format(n=n, x=f"x{n - 1}" if n else x) for n in range(count))
    return parse(f"g (float[2, 4] x) => (float[2, 4] x{count - 1}) <{weights}> {{ {nodes} }}")


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_block_ends_where_one_value_is_alive(most):
    found = blocks_of(layers(6), weight_bytes=most * WEIGHT)
    assert [block.weight_bytes for block in found] == [most * WEIGHT] * (6 // most)
    assert [block.outputs for block in found] == [(f"x{n}",) for n in range(most - 1, 6, most)]
    assert [block.inputs for block in found][1:] == [block.outputs for block in found][:-1]


def test_blocks_hold_every_node_once_in_order():
    model = layers(5)
    for most in range(6):
        found = blocks_of(model, weight_bytes=most * WEIGHT)
        assert [name for block in found for name in block.nodes] == [node.name for node in model.graph.nodes]


def test_what_fits_is_one_block():
    (only,) = blocks_of(layers(3), weight_bytes=3 * WEIGHT)
    assert (only.inputs, only.outputs) == (("x",), ("x2",))


def test_a_weight_that_a_block_uses_twice_counts_once():
    model = parse(
        "g (float[4, 4] x) => (float[4, 4] y) <float[4, 4] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}> "
        "{ [a] p = MatMul(x, w) [b] y = MatMul(p, w) }"
    )
    assert [block.weight_bytes for block in blocks_of(model, weight_bytes=WEIGHT)] == [WEIGHT]


def test_nodes_that_exchange_a_sequence_are_not_parted():
    model = parse(
        "g (float[4, 4] x) => (float[4, 4] y) <float[4, 4] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}, "
        "float[4, 4] v = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}, int64 first = {0}> "
        "{ [a] p = MatMul(x, w) [s] s = SequenceConstruct(p, x) [t] t = SequenceAt(s, first) [b] y = MatMul(t, v) }"
    )
    found = blocks_of(model, weight_bytes=WEIGHT)
    assert all(("s" in block.nodes) == ("t" in block.nodes) for block in found)


def test_the_work_grows_as_the_nodes(monkeypatch):
    asked = []
    consumers = Graph.consumers
    monkeypatch.setattr(Graph, "consumers", lambda self, value: asked.append(1) or consumers(self, value))

    def work(count):
        model = layers(count)
        asked.clear()
        blocks_of(model, weight_bytes=WEIGHT)
        return len(asked)

    assert work(40) <= 2.1 * work(20)


def test_the_size_of_weights():
    model = of_message(encoder())
    expected = sum(value.const_value.nbytes for value in model.ir.graph.initializers.values())
    assert weights_bytes(model.graph.initializers.values()) == expected


def test_the_largest_weight_of_a_block_is_named_with_its_first_user():
    model = parse(
        "g (float[2] x) => (float[2] y) <float[2] a = {1, 2}, float b = {3}> "
        "{ [small] s = Mul(x, b) [first] f = Add(s, a) [second] y = Sub(f, a) }"
    )
    (block,) = blocks_of(model, weight_bytes=1000)
    assert largest_weight(model, block) == ("a", "first", 8)  # two floats of 4 bytes
