"""What is known of a network's values: how much of the model that covers, and what lies between known values.

The network answers through a stand-in of its worker, with numbers that are worked out here; PyTorch is not needed.
"""

import types

import numpy as np
import pytest
from onnx import helper

from models import branchy, of_message
from network_stand_in import Worker, exported
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.cutting.between import between
from tensortriage_torch.rungs.network_values import (
    Inner,
    NetworkValues,
    modules_of,
    network_values,
    next_known,
)
from tensortriage_torch.traced_values import Trace

X = np.float32([[1, 2, 3], [4, 5, 6]])


def values(**given):
    plain = {"folded": {}, "arrays": {}, "descriptions": {}, "trace": Trace({}, {}, {}), "names": ("y",)}
    return NetworkValues(inner=Inner.NONE, training=False, reason="", own_error=None, **plain, **given)


@pytest.fixture
def asked():
    """Return a function that asks a network which knows some inner values; what is known of it, and its worker."""

    def ask(inner, known=(), wide=()):
        model = of_message(exported())
        worker = Worker(dict(known), dict(wide), training=True)
        outputs = {"y": -np.tanh(X).T}
        lab = types.SimpleNamespace(
            query=lambda spec, model, feed, question, **words: worker.answer(question, feed.tensors, **words),
            outputs=lambda *_: outputs,
        )
        inv = types.SimpleNamespace(model=model, lab=lab)
        return network_values(inv, "torch", Feed("real", {"x": X}, Origin.REAL), inner=inner), worker

    return ask


def test_outputs_alone_cost_no_look_inside(asked):
    found, worker = asked(Inner.NONE, {"a": np.tanh(X)})
    assert (found.names, found.own_error, found.training, worker.asked) == (("y",), None, False, [])
    assert (found.modules, found.seen) == ({"first", "second"}, {"second"})


def test_what_modules_return_is_seen_in_the_order_of_the_model(asked):
    found, worker = asked(Inner.MODULES, {"a": np.tanh(X)}, {"y": -np.tanh(X.astype(np.float64)).T * 1.01})
    assert (found.names, found.seen) == (("a", "y"), {"first", "second"})
    assert "program" not in worker.asked  # the network is not exported for that
    assert found.own_error == pytest.approx(0.01 / 1.01, rel=1e-3)
    assert (found.described("first"), found.described("second")) == ("Tanh()", "")
    assert "program" in asked(Inner.OPERATIONS)[1].asked


@pytest.mark.parametrize(("shape", "kept"), [((2, 3), True), ((6,), True), ((1, 2, 3), True), ((2, 2, 2), False)])
def test_values_get_the_shape_that_the_model_has_for_them(asked, shape, kept):
    made = np.resize(np.tanh(X), shape)
    found, _ = asked(Inner.MODULES, {"a": made})
    assert ("a" in found.names) is kept
    assert not kept or found.arrays["a"].shape == (2, 3)


def test_outputs_in_float64_of_another_shape_tell_nothing(asked):
    assert asked(Inner.MODULES, {}, {"y": np.ones(5)})[0].own_error is None
    assert asked(Inner.MODULES, {}, {"y": np.ones((3, 2), np.int64)})[0].own_error is None


@pytest.mark.parametrize(
    ("modules", "seen", "covers"), [("", "", False), ("ab", "ab", True), ("ab", "", False), ("abcdefghij", "a", False)]
)
def test_most_is_covered_where_results_of_most_modules_are_known(modules, seen, covers):
    found = values(modules=frozenset(modules), seen=frozenset(seen))
    assert found.covers_most is covers
    assert (found.evidence["modules"], found.evidence["modules_compared"]) == (len(modules), len(seen))
    assert (f"{len(seen)} of {len(modules)} modules" in found.share) is bool(modules)


def test_modules_are_told_with_what_leaves_them():
    assert modules_of(of_message(exported()).graph) == {"first": {"a"}, "second": {"y"}}
    assert modules_of(branchy().graph) == {}


@pytest.mark.parametrize(
    ("value", "known", "followers", "makers"),
    [
        ("a", "bcyz", "bcz", ["start"]),
        ("a", "yz", "yz", ["start"]),
        ("a", "", "", ["start"]),
        ("y", "xa", "", ["left", "right", "join"]),
        ("y", "xbc", "", ["join"]),
        ("y", "x", "", ["start", "left", "right", "join"]),
        ("x", "a", "a", []),
    ],
)
def test_what_lies_between_known_values(value, known, followers, makers):
    graph = branchy().graph
    assert next_known(graph, value, known) == set(followers)
    assert [node.name for node in between(graph, value, known)] == makers


def test_a_node_that_is_a_constant_makes_nothing():
    nodes = [helper.make_node("Constant", [], ["c"], value_float=2.0), helper.make_node("Mul", ["x", "c"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, (2,))],
        [helper.make_tensor_value_info("y", 1, (2,))],
    )
    model = of_message(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))
    assert [node.op_type for node in between(model.graph, "y", {"x"})] == ["Mul"]
