"""Which part of an exported model is not its network: the constant, the node or the operation that is to blame.

The network answers through a stand-in of its process, with numbers that are worked out here.
"""

import math

import numpy as np
import pytest
from onnx import helper

from models import parse, proto
from network_stand_in import Worker, call, entry, exported
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.reference import Dispute
from tensortriage.errors import RunFailed
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.synthetic.size_sweep import Shaped
from tensortriage.model.lint.finding import LintFinding, Severity
from tensortriage.model.model import Model
from tensortriage.model.provenance.origin import FX_NODE, NodeOrigin
from tensortriage_testing import save_model
from tensortriage_torch.operations import Operation
from tensortriage_torch.rungs.blamed_nodes import kind_of, unlike_the_network, wrong_constant
from tensortriage_torch.rungs.network_changed import network_changed
from tensortriage_torch.rungs.network_values import Inner, NetworkValues
from tensortriage_torch.traced_values import Trace

MODEL = """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] v = {3, 4}> {
    [first] a = Mul(x, w)
    [second] y = Add(a, v)
}"""
DISPUTE = Dispute("y", 0.5, 1e-3)


def operation(name, *arguments, operator="aten.arange.default", line=3):
    return Operation(NodeOrigin(operator=operator, file="net.py", line=line, fx_node=name), arguments)


def values(folded, trace=None):
    made = {name: operation(name) for name in folded}
    return NetworkValues(
        inner=Inner.OPERATIONS, names=("y",), arrays={}, folded=folded,
        trace=trace or Trace({}, {}, made, tuple(made.values())), modules=frozenset(), seen=frozenset(),
        training=False, reason="", own_error=None, descriptions={},
    )  # fmt: skip


def blamed(folded, trace=None):
    graph = parse(MODEL).graph
    return wrong_constant(graph, graph.nodes, DISPUTE, values(folded, trace))


def test_a_constant_that_is_another_than_the_networks_is_to_blame():
    found = blamed({"w": np.float32([1, 2.2])})
    assert (found.node, found.value, found.change) == ("first", "y", "export")
    assert found.local_error == pytest.approx(0.2 / math.hypot(1, 2.2), rel=1e-6)
    assert "the constant 'w'" in found.reason
    assert "aten.arange (net.py:3)" in found.reason
    assert found.origin.source == "net.py:3"


def test_the_farthest_of_several_is_to_blame_and_a_right_one_never():
    assert blamed({"w": np.float32([1, 2.2]), "v": np.float32([3, 8])}).node == "second"
    assert blamed({"w": np.float32([1, 2]), "v": np.float32([3, 4.001])}) is None  # within what healthy engines err
    assert blamed({}) is None


def test_a_constant_of_another_shape_is_infinitely_far():
    found = blamed({"w": np.float32([1]), "v": np.float32([3, 8])})
    assert (found.node, found.local_error) == ("first", math.inf)
    assert "has another shape, [2] instead of [1]," in found.reason
    assert blamed({"w": np.float32([np.nan, 2])}) is not None  # what is no number is not right either


def test_a_constant_that_depends_on_the_inputs_is_told_as_such():
    own, baked = operation("w", "size"), operation("size", "x", operator="aten.sym_size.int", line=8)
    trace = Trace({}, {}, {"w": own}, (baked, own), frozenset({"x"}))
    found = blamed({"w": np.float32([5, 6])}, trace)
    assert "though it depends on the inputs" in found.reason
    assert found.origin.operator == "aten.sym_size.int"


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        (["aten.add", "aten.layer_norm", "aten.mul"], "aten.layer_norm"),
        (["aten.layer_norm", "aten.mul"], None),  # it is the first anyway
        (["aten.add", "aten.mul"], None),
    ],
)
def test_the_operation_that_is_called_like_the_node_is_told(operators, expected):
    node = helper.make_node("LayerNorm", ["x"], ["y"])
    origins = [NodeOrigin(operator=operator) for operator in operators]
    found = kind_of(node, origins)
    assert (found.operator if found else None) == expected


@pytest.mark.parametrize(
    ("names", "operations", "expected"),
    [
        (("tanh", "neg"), {"tanh": 1}, "second"),  # the network has no neg
        (("tanh", "neg"), {"neg": 1}, "first"),
        (("tanh", "neg"), {"tanh": 1, "neg": 1}, "second"),
        (("tanh", "neg"), {}, "second"),
        (("", ""), {"tanh": 1}, "second"),  # nothing is known of them
    ],
)
def test_an_operation_that_the_network_does_not_have_is_to_blame(tmp_path, names, operations, expected):
    message = proto("g (float[2] x) => (float[2] y) { [first] a = Tanh(x)  [second] y = Neg(a) }")
    for node, name in zip(message.graph.node, names, strict=True):
        if name:
            entry(node, FX_NODE, call(name))
    graph = Model.load(save_model(message, tmp_path / "exported.onnx")).graph
    assert unlike_the_network(graph, graph.nodes, operations).name == expected


def test_nodes_that_move_what_an_operation_computed_are_not_blamed(tmp_path):
    text = """g (float[2, 3] x) => (float[3, 2] y) { [act] z = Tanh (x)  [moved] y = Transpose <perm = [1, 0]> (z) }"""
    message = proto(text)
    for node in message.graph.node:
        entry(node, FX_NODE, call("gru"))
    graph = Model.load(save_model(message, tmp_path / "model.onnx")).graph
    assert unlike_the_network(graph, graph.nodes, {"gru"}).name == "act"
    assert unlike_the_network(graph, graph.nodes[1:], {"gru"}).name == "moved"


def test_without_a_network_nothing_is_asked(investigate):
    answer = network_changed(investigate(MODEL, {"x": np.float32([1, 2])}), Evidence())
    assert (answer.verdict, answer.findings) == (None, {})


@pytest.fixture
def asked(investigate):
    """Return a function that asks whether a network is its model; it has these numbers, by ONNX name."""

    def ask(numbers, *, feeds=1, evidence=None, sweep=(), **given):
        network = EngineSpec("torch", {"file": "network.pt2"})
        inv = investigate(exported(), *[{"x": X}] * feeds, network=network, sweep=sweep)
        inner = {name: array for name, array in numbers.items() if name != "y"}
        worker, ours = Worker(inner, {"y": numbers["y"]}, **given), inv.lab.outputs
        outputs = {"y": numbers["y"]}
        inv.lab.query = lambda spec, model, feed, question, **words: worker.answer(question, feed.tensors, **words)
        inv.lab.outputs = lambda spec, *rest, **more: outputs if spec.name == "torch" else ours(spec, *rest, **more)
        return network_changed(inv, evidence or Evidence()), inv

    return ask


X = np.float32([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
RIGHT = {"a": np.tanh(X), "b": np.tanh(X).T, "y": -np.tanh(X).T}


def test_a_network_with_the_models_numbers_is_the_model(asked, last_step):
    answer, inv = asked(RIGHT, feeds=2)
    assert (answer.verdict, answer.findings) == (None, {})
    assert last_step(inv).answer.startswith("yes: ")
    assert last_step(inv).evidence["modules_compared"] == 2


def test_a_network_is_asked_at_every_shape_of_a_sweep(asked):
    other = Shaped("n=3", Feed("f with n=3", {"x": 2 * X}, Origin.REAL))  # the stand-in answers as for X
    verdict = asked(RIGHT, sweep=(other,))[0].verdict
    assert verdict.kind is VerdictKind.MODEL_CHANGED
    assert verdict.summary.endswith(", at n=3; at the given sizes they agree")
    assert asked(RIGHT, sweep=(Shaped("n=2", Feed("f with n=2", {"x": X}, Origin.REAL)),))[0].verdict is None


def test_another_number_inside_that_no_output_shows_is_no_change(asked):
    assert asked({**RIGHT, "a": 2 * RIGHT["a"]})[0].verdict is None


@pytest.mark.parametrize(
    ("wrong", "nodes", "culprit"),
    [
        (("y",), ("last",), "last"),
        (("b", "y"), ("moved",), "moved"),
        (("a", "b", "y"), ("act",), "act"),
        (("a", "y"), ("last",), "last"),  # what follows from a is right: it is not on the way to the failure
    ],
)
def test_the_first_wrong_value_that_wrong_values_follow_is_told(asked, last_step, wrong, nodes, culprit):
    answer, inv = asked({name: array * (2 if name in wrong else 1) for name, array in RIGHT.items()})
    verdict, part = answer.verdict, answer.findings["wrong_part"]
    assert (verdict.kind, verdict.confidence_on("real")) == (VerdictKind.MODEL_CHANGED, 1.0)
    assert [each.node for each in verdict.culprits] == [culprit]
    assert (part.nodes, part.value) == (nodes, inv.model.graph.node(culprit).outputs[0])
    assert verdict.culprits[0].local_error == pytest.approx(1.0, rel=1e-5)  # the network has twice the model's
    assert last_step(inv).evidence["output"] == "y"
    assert verdict.culprits[0].reason in verdict.summary
    assert ".eval()" not in verdict.summary


def test_a_network_in_training_mode_is_told_to_be(asked):
    answer, _ = asked({**RIGHT, "y": 2 * RIGHT["y"]}, training=True)
    assert "call .eval()" in answer.verdict.summary


def test_a_network_that_fails_cannot_be_compared(asked, last_step):
    answer, inv = asked(RIGHT, fails={"values": RunFailed("it raised", slug="run-failed")})
    assert (answer.verdict.kind, answer.verdict.confidence_on("real")) == (VerdictKind.COMPARISON_UNSOUND, 1.0)
    assert last_step(inv).answer == "unknown: it raised"


@pytest.mark.parametrize("training", [False, True])
def test_a_model_that_was_left_in_training_mode_explains_why_the_rest_is_not_known(asked, training):
    found = Evidence(
        in_training=(LintFinding("training-mode", Severity.PROBLEM, "act", "Tanh", "a", "", "is in training mode", ""),)
    )
    numbers, fails = {**RIGHT, "y": 2 * RIGHT["y"]}, {"program": RunFailed("it raised", slug="run-failed")}
    answer, _ = asked(numbers, evidence=found, fails=fails, training=training)
    if training:  # so is the network
        assert answer.verdict.kind is VerdictKind.COMPARISON_UNSOUND
    else:
        assert [each.node for each in answer.verdict.culprits] == ["act"]
        assert "in PyTorch it is Tanh()" in answer.verdict.culprits[0].reason
