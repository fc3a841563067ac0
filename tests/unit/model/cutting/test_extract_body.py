"""A lifted body must compute in its first turn what ONNX Runtime computes in it; If, Loop and Scan per onnx.ai."""

import numpy as np
import pytest

import models
import running
from tensortriage.errors import UsageError
from tensortriage.model.cutting.extract_body import lift_body
from tensortriage.model.shape_inference.value_specs import value_specs


def first_turn(model, feed, node, branch=""):
    lifted = lift_body(model, node, branch, specs=value_specs(model))
    golden, _ = running.record(model, feed)
    golden |= {name: model.graph.weight(name) for name in model.graph.constants}
    return lifted, running.run(lifted.model, {name: s.take(golden) for name, s in lifted.sources.items()})


def test_the_branches_of_an_if():
    x = np.array([-1.0, -4.0], np.float32)
    for branch, value, expected in (("then_branch", "t", [1, 8]), ("else_branch", "e", [np.nan, np.nan])):
        lifted, found = first_turn(models.with_if(), {"c": np.array(True), "x": x}, "choice", branch)
        np.testing.assert_array_equal(found[value], np.array(expected, np.float32))
    assert [spec.name for spec in lifted.model.inputs] == ["x"]
    assert [node.name for node in lifted.model.graph.nodes] == ["rooted"]


def test_captured_constants_come_along():
    model = models.with_if()
    lifted = lift_body(model, "choice", "then_branch", specs=value_specs(model))
    assert [spec.name for spec in lifted.model.inputs] == ["a"]
    np.testing.assert_array_equal(lifted.model.graph.weight("w"), [1, 2])


def test_a_loop_starts_with_its_initial_state():
    x = np.array([2.0, -3.0], np.float32)
    lifted, found = first_turn(models.with_loop(), {"x": x}, "loop")
    assert [spec.name for spec in lifted.model.inputs] == ["i", "more", "state", "step"]
    np.testing.assert_array_equal(found["next"], x + np.abs(x))
    assert found["again"]


SCAN = """
    g (float[2] s, float[2, 3] x, float[3, 2] r) => (float[2] f, float[3, 2] y) {
        [scan] f, y = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [0, 1],
            body = b (float[2] before, float[2] column, float[2] row) => (float[2] after, float[2] out) {
                [add] after = Add(before, column) [mul] out = Mul(after, row) }> (s, x, r)
    }"""


def test_a_scan_starts_with_its_first_slices():
    rng = np.random.default_rng(0)
    feed = {
        "s": rng.standard_normal(2).astype(np.float32),
        "x": rng.standard_normal((2, 3)).astype(np.float32),
        "r": rng.standard_normal((3, 2)).astype(np.float32),
    }
    model = models.parse(SCAN)
    _, found = first_turn(model, feed, "scan")
    np.testing.assert_array_equal(found["after"], feed["s"] + feed["x"][:, 0])
    np.testing.assert_array_equal(found["out"], running.run(model, feed)["y"][0])


@pytest.mark.parametrize(
    ("node", "branch", "slug"),
    [
        ("before", "", "node-without-body"),
        ("choice", "", "body-ambiguous"),
        ("choice", "body", "body-ambiguous"),
        ("nothing", "", "node-unknown"),
    ],
)
def test_what_is_no_body_is_an_error(node, branch, slug):
    model = models.with_if()
    with pytest.raises(UsageError) as caught:
        lift_body(model, node, branch, specs=value_specs(model))
    assert caught.value.slug == slug


def test_later_turns():
    """A Loop hands on its state and counts; a Scan hands on its state and the next slices."""
    x = np.array([2.0, -3.0], np.float32)
    lifted, made = first_turn(models.with_loop(), {"x": x}, "loop")
    fed = lifted.next_turn({"i": np.array(0), "more": np.array(True), "state": x, "step": np.abs(x)}, made)
    assert (fed["i"], fed["more"]) == (1, True)
    np.testing.assert_array_equal(fed["state"], made["next"])
    np.testing.assert_array_equal(fed["step"], np.abs(x))
    rng = np.random.default_rng(0)
    feed = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("s", 2), ("x", (2, 3)))}
    feed["r"] = rng.standard_normal((3, 2)).astype(np.float32)
    lifted, made = first_turn(models.parse(SCAN), feed, "scan")
    following = lifted.next_turn({name: source.take(feed) for name, source in lifted.sources.items()}, made)
    np.testing.assert_array_equal(following["before"], made["after"])
    np.testing.assert_array_equal(lifted.sources["column"].take(feed, 1), feed["x"][:, 1])
    np.testing.assert_array_equal(lifted.sources["row"].take(feed, 1), feed["r"][-2])
