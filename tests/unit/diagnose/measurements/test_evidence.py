"""What the ladder knows so far, and its rows by layer: every figure that was measured, and no other."""

import math

import numpy as np
import pytest

from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.evidence import Evidence, finite
from tensortriage.diagnose.measurements.local_errors.injection import Influence
from tensortriage.diagnose.measurements.local_errors.local import local_errors
from tensortriage.diagnose.measurements.nonfinite_values.nonfinite import Excess
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.envelope.setting import Floors
from tensortriage.inputs.feed import Feed, Origin

MODEL = """g (float[2] x) => (float[2] y) {
    [turned] a = Neg(x)
    [work] y = Exp(a)
}"""
X = np.float32([1, 2])
FLOORS = Floors({"a": 1e-7, "y": 2e-7}, {"a": 1e-3, "y": 2e-3}, {}, "envelope")


@pytest.fixture
def inv(investigate):
    return investigate(MODEL, {"x": X}, target="faulty:kind=scale,node=work,amount=1.5")


@pytest.fixture
def evidence(inv):
    """One feed, of which nothing but the outputs is known."""
    metrics = {"y": measure(np.exp(-X), 1.5 * np.exp(-X))}
    result = FeedResult(inv.question.feeds[0], metrics, FLOORS, {"y": 0.5}, {"y": False})
    return Evidence(results=(result,))


def test_what_is_found_out_is_added_to_a_copy(evidence):
    more = evidence.with_(kept=("work",))
    assert (evidence.kept, more.kept) == ((), ("work",))
    assert more.results is evidence.results


def test_the_feed_that_fails_worst_is_looked_into(evidence):
    harmless = Feed("harmless", {}, Origin.REAL)
    passing = FeedResult(harmless, {}, FLOORS, {"y": 0.0}, {"y": True})
    both = Evidence(results=(passing, *evidence.results))
    assert both.worst_feed is evidence.results[0]
    assert both.feed is evidence.results[0].feed


def test_the_error_of_a_value_is_that_of_the_targets_own_run(evidence):
    assert evidence.error("a") is None
    seen = evidence.with_(in_context={"a": measure(X, X * 2)})
    assert seen.error("a") == 1.0
    assert seen.error("y") is None


def test_without_a_look_inside_there_are_no_rows(inv, evidence):
    assert evidence.layer_rows(inv) == ()


def test_rows_of_the_floors_alone_say_what_is_foreseen(inv, evidence):
    rows = evidence.with_(floors=FLOORS).layer_rows(inv)
    assert [(row.value, row.node, row.op_type, row.order) for row in rows] == [
        ("a", "turned", "Neg", 0),
        ("y", "work", "Exp", 1),
    ]
    assert [(row.dtype, row.shape, row.floor) for row in rows] == [("float32", (2,), 1e-3), ("float32", (2,), 2e-3)]
    for row in rows:
        assert (row.in_context_error, row.local_error, row.local_floor, row.floor_ratio, row.influence) == (None,) * 5
        assert (row.max_abs_reference, row.max_abs_target, row.nonfinite_target, row.note) == (None, None, 0, "")


def test_rows_hold_every_figure_that_was_measured(inv, evidence):
    local = local_errors(inv, evidence.feed)
    broken = measure(np.exp(-X), np.float32([np.inf, 1]))
    known = evidence.with_(
        local=local,
        in_context={"a": measure(-X, np.float32([-1, -4])), "y": broken},
        influence=Influence({"y": 0.25}, 0.25, 1.0),
        excess=(Excess("y", "work", "Exp", 7e4, constant=False),),
    )
    turned, work = known.layer_rows(inv)
    assert turned.in_context_error == pytest.approx(2 / math.sqrt(5), rel=1e-6)  # (0, 2) beside (1, 2)
    assert (turned.max_abs_reference, turned.max_abs_target, turned.floor) == (2.0, 4.0, None)
    assert (turned.local_error, turned.influence, turned.note) == (0.0, None, "")
    assert work.local_error == pytest.approx(0.5, rel=1e-6)  # what was planted
    assert work.floor_ratio == pytest.approx(work.local_error / work.local_floor)
    assert (work.in_context_error, work.nonfinite_target, work.influence) == (math.inf, 1, 0.25)
    assert work.note == "exceeds fp32"


@pytest.mark.parametrize(("number", "expected"), [(1.5, 1.5), (math.inf, None), (math.nan, None), (np.float32(2), 2.0)])
def test_only_finite_numbers_are_shown(number, expected):
    assert finite(number) == expected
