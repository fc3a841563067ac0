"""Whether there is anything to compare: a sound reference, a target that answers, and outputs of the same kind."""

import numpy as np
import pytest

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import Unsound
from tensortriage.diagnose.rungs.premises.comparable_outputs import (
    above_the_floor,
    allowed_in_words,
    compare_outputs,
    incomparable,
    is_silent,
    reference_is_sound,
    says_nothing,
)
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.setting import Floors

MODEL = """g (float[4] x) => (float[4] y, float[1] z) {
    [root] a = Sqrt(x)
    [work] y = Neg(a)
    [sum] z = ReduceSum <keepdims: int = 1> (a)
}"""
GOOD, BAD, ZERO = (np.float32(each) for each in ([1, 4, 9, 16], [-1, 4, 9, 16], [4, 4, 4, 4]))
NOTHING = Evidence()


def test_a_sound_reference_lets_the_ladder_go_on(investigate, last_step):
    inv = investigate(MODEL, {"x": GOOD}, {"x": 2 * GOOD})
    assert reference_is_sound(inv, NOTHING).verdict is None
    assert last_step(inv).evidence["feeds"] == 2
    assert last_step(inv).answer.startswith("yes")


def test_a_nan_of_the_reference_is_told_with_the_op_that_makes_it(investigate, last_step):
    inv = investigate(MODEL, {"x": GOOD}, {"x": BAD})
    verdict = reference_is_sound(inv, NOTHING).verdict
    assert (verdict.kind, verdict.confidence_on("real")) == (VerdictKind.COMPARISON_UNSOUND, 1.0)
    assert [culprit.node for culprit in verdict.culprits] == ["root"]  # the root of -1
    assert "feed-1" in verdict.summary
    assert last_step(inv).evidence["outputs"] == ["y", "z"]


def test_a_reference_that_fails_is_no_reference(investigate):
    inv = investigate(MODEL, {"x": GOOD}, reference=EngineSpec.parse("faulty:kind=build-failure,node=work"))
    verdict = reference_is_sound(inv, NOTHING).verdict
    assert verdict.kind is VerdictKind.COMPARISON_UNSOUND
    assert "refuses to build the model" in verdict.summary


@pytest.mark.parametrize(
    ("operator", "feeds", "kind"),
    [
        ("Neg", [ZERO], VerdictKind.INCONCLUSIVE),
        ("IsInf", [GOOD], VerdictKind.INCONCLUSIVE),
        ("Neg", [ZERO, GOOD], None),
        ("Neg", [GOOD], None),
    ],
)
def test_constant_outputs_prove_nothing_unless_one_feed_changes_them(investigate, last_step, operator, feeds, kind):
    """Whether the inputs are constant or not."""
    made = "bool" if operator == "IsInf" else "float"
    inv = investigate(f"g (float[4] x) => ({made}[4] y) {{ y = {operator}(x) }}", *({"x": feed} for feed in feeds))
    silent = kind is not None
    assert is_silent(inv) is silent
    verdict = says_nothing(inv, NOTHING).verdict
    assert (verdict and verdict.kind) is kind
    reference_is_sound(inv, NOTHING)
    assert last_step(inv).answer.startswith("not enough") is silent


def test_a_target_that_answers_is_judged_on_every_feed(investigate, last_step):
    inv = investigate(MODEL, {"x": GOOD}, {"x": 2 * GOOD}, target="faulty:kind=scale,node=work,amount=1.5,length=4")
    answer = compare_outputs(inv, NOTHING)
    assert answer.verdict is None
    results = answer.findings["results"]
    assert [result.within for result in results] == [{"y": False, "z": True}] * 2
    above_the_floor(inv, Evidence(results=results))
    found = last_step(inv)
    assert (found.evidence["output"], found.evidence["failing_feeds"], found.evidence["feeds"]) == ("y", 2, 2)
    assert found.evidence["relative_error"] == pytest.approx(0.5, rel=1e-6)
    assert found.answer.startswith("yes")


def test_a_target_that_agrees_is_said_not_to_fail(investigate, last_step):
    inv = investigate(MODEL, {"x": GOOD})
    above_the_floor(inv, Evidence(results=compare_outputs(inv, NOTHING).findings["results"]))
    assert last_step(inv).answer.startswith("no: ")
    assert "feeds" not in last_step(inv).answer
    assert (last_step(inv).evidence["failing_feeds"], last_step(inv).evidence["limit"]) == (
        0,
        "10x the fp32 noise floor",
    )


@pytest.mark.parametrize(
    ("fault", "kind", "culprits"),
    [
        ("build-failure", VerdictKind.BUILD_FAILED, []),
        ("shape", VerdictKind.LOCAL_FAULT, ["work"]),
    ],
)
def test_a_target_without_comparable_answer_ends_the_diagnosis(investigate, fault, kind, culprits):
    inv = investigate(MODEL, {"x": GOOD}, target=f"faulty:kind={fault},node=work")
    verdict = compare_outputs(inv, NOTHING).verdict
    assert verdict.kind is kind

    assert culprits == [] or [culprit.node for culprit in verdict.culprits] == culprits


def test_right_values_in_another_layout_are_told_as_such(investigate):
    inv = investigate(MODEL, {"x": GOOD})
    feed = inv.question.feeds[0]
    moved = incomparable(inv, Unsound("why", "output 'y': transposed", layout=True), feed)
    renamed = incomparable(inv, Unsound("why", "'q' holds 'y'", layout=False), feed)
    unknown = incomparable(inv, Unsound("why", "", layout=False), feed)
    assert [each.kind for each in (moved, renamed, unknown)] == [
        VerdictKind.LAYOUT,
        VerdictKind.COMPARISON_UNSOUND,
        VerdictKind.COMPARISON_UNSOUND,
    ]
    assert "'q' holds 'y'" in renamed.summary
    assert moved.confidence_on("real") < 1.0


def test_what_is_allowed_is_that_of_the_output_that_may_be_off_most(investigate):
    inv, half = investigate(MODEL, {"x": GOOD}), investigate(MODEL, {"x": GOOD}, target="emulate:precision=fp16")
    floors = Floors({"y": 1e-6, "z": 2e-6}, {"y": 0.5, "z": 0.25}, {}, "envelope")
    assert "'y' by 1.0e-05 in fp32" in allowed_in_words(inv, floors)  # ten times its floor
    assert "50 %" not in allowed_in_words(inv, floors)
    assert "rounding to fp16 costs it 50 %" in allowed_in_words(half, floors)
    assert "no output" in allowed_in_words(inv, Floors({}, {}, {}, "envelope"))
