"""The local error of every op: on golden inputs, in as many parts as memory demands, and who is a suspect by it."""

import math

import numpy as np
import pytest

from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.local_errors.local import (
    MOST_SUSPECTS,
    Local,
    joined,
    local_errors,
    parts_of,
    suspects,
)
from tensortriage.envelope.ops import OpLimits
from tensortriage.envelope.setting import Floors
from tensortriage.values.store import MemoryStore

MODEL = """g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> {
    [first] a = Mul(x, w)
    [second] b = Tanh(a)
    [third] y = Neg(b)
}"""
FEED = {"x": np.float32([0.1, -0.2, 0.3, 0.4])}
TARGET = "faulty:kind=scale,node=second,amount=1.5"
NAMES = ("first", "second", "third")


def figures(errors, *, floor=1e-6, misshapen=(), arrays=()):
    one = np.float32([1])
    floors = Floors(dict.fromkeys(errors, floor), dict.fromkeys(errors, floor), {}, "envelope")
    return Local(
        {name: measure(one, one + np.float32(error)) for name, error in errors.items()},
        floors,
        OpLimits.plain(floors),
        dict.fromkeys(misshapen, "another shape"),
        MemoryStore(dict.fromkeys(arrays, one)),
    )


def test_only_the_op_that_errs_does_so_on_golden_inputs(investigate):
    inv = investigate(MODEL, FEED, target=TARGET)
    found = local_errors(inv, inv.question.feeds[0])
    assert found.error("a") == found.error("y") == 0.0  # bit for bit ONNX Runtime's, on operands without error
    assert found.error("b") == pytest.approx(0.5, rel=1e-6)  # what was planted
    assert found.error("unknown") is None
    assert [value for value, _ in suspects(found)] == ["b"]
    np.testing.assert_allclose(found.arrays["b"], 1.5 * np.tanh(FEED["x"] * [1, 2, 3, 4]), rtol=1e-6)
    assert found.floors.target.keys() == {"a", "b", "y"}


def test_ops_can_be_chosen_and_memory_splits_them(investigate):
    inv = investigate(MODEL, FEED, target=TARGET)
    golden = inv.golden.of(inv.question.feeds[0])
    assert parts_of(inv, golden) == [NAMES]
    assert parts_of(inv, golden, only=["third", "first"]) == [("first", "third")]
    narrow = investigate(MODEL, FEED, target=TARGET, batch_bytes=48)  # a third of it holds one value of 16 bytes
    feed = narrow.question.feeds[0]
    assert parts_of(narrow, golden) == [(name,) for name in NAMES]
    found = local_errors(narrow, feed, only=["first", "second"])
    assert (list(found.metrics), found.error("a")) == (["a", "b"], 0.0)
    assert found.error("b") == pytest.approx(0.5, rel=1e-6)
    unbounded = investigate(MODEL, FEED, target=TARGET, batch_bytes=None)
    assert parts_of(unbounded, golden) == [NAMES]


def test_what_reads_a_value_without_golden_one_is_left_out(investigate):
    inv = investigate(MODEL, FEED)
    golden = inv.golden.of(inv.question.feeds[0])
    known = MemoryStore({name: golden[name] for name in ("b", "y")})
    assert parts_of(inv, known) == [("first", "third")]  # the second reads a


def test_suspects_exceed_their_floors_and_the_worst_come_first():
    found = suspects(figures({"right": 1e-6, "bad": 1e-3, "worse": 1e-2}, misshapen=["odd"]))
    assert [name for name, _ in found] == ["odd", "worse", "bad"]
    assert found[0][1] == math.inf
    assert found[1][1] == pytest.approx(1e4, rel=1e-3)  # error over floor
    many = figures({f"v{number}": 0.1 + number for number in range(40)})
    assert [name for name, _ in suspects(many)] == [f"v{number}" for number in range(39, 39 - MOST_SUSPECTS, -1)]
    assert suspects(figures({"unjudged": 1.0}, floor=math.inf)) == []


def test_parts_are_joined_into_one():
    one, other = figures({"a": 0.5}, misshapen=["m"], arrays=["a"]), figures({"b": 0.25}, floor=1e-3, arrays=["b"])
    both = joined([one, other])
    assert (both.error("a"), both.error("b")) == (0.5, 0.25)
    assert dict(both.floors.target) == dict(both.floors.fp32) == {"a": 1e-6, "b": 1e-3}
    assert (set(both.arrays.names()), set(both.misshapen), both.floors.source) == ({"a", "b"}, {"m"}, "envelope")
    assert not joined([]).metrics
    assert joined([]).floors.source == ""
