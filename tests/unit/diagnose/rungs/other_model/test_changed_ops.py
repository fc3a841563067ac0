"""Which nodes of a changed model compute something else, and which of several that run together is told of."""

import math

import numpy as np
import pytest

from diagnosing import CHAIN_FEED, named, softmax_chain
from models import parse
from tensortriage.diagnose.rungs.other_model.changed_ops import changed_ops, guilty, local_errors, units_of
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.model.similarity.changes import ChangeKind, NodeChange
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage_testing import save_model

CHAIN = """<ir_version: 8, opset_import: ["": 17]>
  g (float[4,8] x) => (float[4,8] y) <float[8] w = {%s}> {
    a = Mul(x, w)
    b = %s(a)
    s = Softmax<axis=%d>(b)
    y = Mul(s, x)
  }"""


def chain(weights="1,2,3,4,5,6,7,8", middle="Tanh", axis=1):
    return named(CHAIN % (weights, middle, axis), "scale", "tanh", "softmax", "last")


@pytest.fixture
def asked(investigate, tmp_path):
    """Return a function that gives the investigation of the chain, and a changed chain next to it."""

    def ask(message):
        inv = investigate(softmax_chain(), CHAIN_FEED)
        return inv, Correspondence.of(inv.model, Model.load(save_model(message, tmp_path / "changed.onnx")))

    return ask


def test_a_changed_weight_is_told_of_its_node_alone(asked):
    inv, beside = asked(chain("2,4,6,8,10,12,14,16"))
    (culprit,) = changed_ops(inv, beside, inv.question.feeds[0])
    assert (culprit.node, culprit.value, culprit.change) == ("scale", "a", ChangeKind.WEIGHT_RESCALED.value)
    assert culprit.local_error == pytest.approx(1.0, rel=1e-6)  # twice as much
    assert culprit.floor_ratio > 1e6


def test_of_two_changes_the_farther_from_its_floor_comes_first(asked):
    inv, beside = asked(chain("1.001,2,3,4,5,6,7,8", axis=0))
    culprits = changed_ops(inv, beside, inv.question.feeds[0])
    assert [culprit.node for culprit in culprits] == ["softmax", "scale"]
    assert culprits[0].floor_ratio > culprits[1].floor_ratio


def test_the_same_model_has_no_culprit(asked):
    inv, beside = asked(chain())
    assert changed_ops(inv, beside, inv.question.feeds[0]) == []


def test_where_no_node_can_be_shown_to_be_wrong_all_that_differ_are_told(investigate, asked):
    """The reference refuses whatever holds the node: nothing is measured."""
    _, beside = asked(chain("2,4,6,8,10,12,14,16"))
    broken = EngineSpec.parse("faulty:kind=build-failure,node=tanh")
    inv = investigate(softmax_chain(), CHAIN_FEED, reference=broken)
    (culprit,) = changed_ops(inv, beside, inv.question.feeds[0])
    assert (culprit.node, culprit.local_error, culprit.floor_ratio) == ("scale", None, None)
    assert culprit.reason == beside.diff.nodes["scale"]


def test_every_unit_is_measured_on_golden_values_where_it_has_them(asked):
    inv, beside = asked(chain(axis=0))
    feed, values, plain = inv.question.feeds[0], beside.diff.values, beside.plain
    units = units_of(plain, values)
    assert units == [["scale"], ["tanh"], ["softmax"], ["last"]]
    errors = local_errors(inv, plain, values, units, feed)
    assert errors["a"] == errors["b"] == errors["y"] == 0.0
    assert errors["s"] > 0.1
    unknown = {name: original for name, original in values.items() if name != "b"}
    assert set(local_errors(inv, plain, unknown, [["softmax"], ["last"]], feed)) == {"y"}  # nothing to feed it with


def test_another_shape_is_infinitely_wrong(asked, tmp_path):
    inv, _ = asked(chain())
    text = """g (float[4, 8] x) => (float[4] y) <int64[1] last = {-1}> {
        [sum] y = ReduceSum <keepdims: int = 0> (x, last)
    }"""
    other = parse(text)
    found = local_errors(inv, other, {"x": "x", "y": "y"}, [["sum"]], inv.question.feeds[0])
    assert found == {"y": math.inf}


def test_nodes_that_exchange_an_unknown_value_stay_together():
    plain = parse("""g (float[2] x) => (float[2] y) {
        [one] a = Neg(x)  [two] b = Exp(a)  [three] c = Abs(b)  [four] y = Add(c, a)
    }""")
    assert units_of(plain, {"a": "A", "c": "C"}) == [["one"], ["two", "three"], ["four"]]
    assert units_of(plain, dict.fromkeys("abc", "A")) == [["one"], ["two"], ["three"], ["four"]]
    assert [sorted(unit) for unit in units_of(plain, {})] == [["four", "one", "three", "two"]]


NAMED, PLAIN, ROUNDED = (
    NodeChange(kind, "node", "node", "MatMul", "differs")
    for kind in (ChangeKind.WEIGHT_RESCALED, ChangeKind.WEIGHT, ChangeKind.WEIGHT_ROUNDED)
)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "second"),  # who makes it
        ({"first": (PLAIN,)}, "first"),
        ({"first": (NAMED,), "second": (PLAIN,)}, "first"),
        ({"first": (PLAIN,), "second": (PLAIN,)}, "second"),
        ({"first": (ROUNDED,)}, "second"),  # rounding is no change
        ({"third": (NAMED,)}, "second"),  # what comes later is no reason
    ],
)
def test_the_node_of_which_most_can_be_said_is_told(changes, name):
    nodes = parse("""g (float[2] x) => (float[2] y) {
        [first] a = Neg(x)  [second] b = Exp(a)  [third] y = Abs(b)
    }""").graph.nodes
    assert guilty(nodes[1], nodes, changes).name == name


def test_values_without_change_have_no_error(asked):
    inv, beside = asked(chain())
    feed = inv.question.feeds[0]
    errors = local_errors(inv, beside.plain, beside.diff.values, units_of(beside.plain, beside.diff.values), feed)
    assert np.max(list(errors.values())) == 0.0
