"""Right numbers in wrong places: found in outputs and in ops, told apart, and how they are put back."""

import numpy as np
import pytest

from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.compare.patterns.finding import PatternFinding
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.local import Local, local_errors
from tensortriage.diagnose.measurements.moved_values import moved
from tensortriage.diagnose.rungs.operators.blame import Blame
from tensortriage.diagnose.rungs.operators.layout import (
    cure,
    facts,
    layout,
    of_an_op,
    out_of_order,
    outputs_in_place,
    places,
    said,
    share_of_suspects,
)
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit, VerdictKind
from tensortriage.envelope.ops import OpLimits
from tensortriage.envelope.setting import Floors
from tensortriage.values.store import MemoryStore

MODEL = """g (float[8, 9] x) => (float[8, 9] y, float[8, 9] z) {
    [inner] a = Tanh(x)
    [work] y = Neg(a)
    [other] z = Exp(x)
}"""
X = np.random.default_rng(3).standard_normal((8, 9)).astype(np.float32)
PERMUTED, SCALED = "faulty:kind=permute,node=work", "faulty:kind=scale,node=work"
FINDING = PatternFinding("transposition", "transposed", 1.0, {"axes": [1, 0]})


@pytest.fixture
def asked(investigate, compared):
    def ask(target):
        inv = investigate(MODEL, {"x": X}, target=target)
        return inv, compared(inv)

    return ask


def test_an_output_in_another_order_is_found_among_those_that_fail(asked, last_step):
    inv, evidence = asked(PERMUTED)
    answer = outputs_in_place(inv, evidence)
    assert answer.verdict is None
    assert list(answer.findings["moved"]) == ["y"]
    assert last_step(inv).answer.startswith("no: 'y': ")
    assert last_step(inv).evidence["outputs"]["y"]["pattern"] == answer.findings["moved"]["y"].slug


def test_another_error_is_no_order(asked, last_step):
    inv, evidence = asked(SCALED)
    assert outputs_in_place(inv, evidence).findings["moved"] == {}
    assert last_step(inv).answer.startswith("yes")


def test_a_target_that_does_not_answer_any_more_says_nothing(asked, investigate):
    _, evidence = asked(PERMUTED)
    refusing = investigate(MODEL, {"x": X}, target="faulty:kind=build-failure,node=work")
    answer = outputs_in_place(refusing, evidence)
    assert (answer.verdict, answer.findings) == (None, {})


def test_exchanged_outputs_are_a_verdict(investigate, compared, monkeypatch):
    """The model that runs has the names of its outputs exchanged; golden values are those of the other."""
    inv = investigate(MODEL, {"x": X}, target=SCALED)
    evidence = compared(inv)
    feed = inv.question.feeds[0]
    exchanged = {"y": np.exp(X), "z": -np.tanh(X)}
    monkeypatch.setattr(Investigation, "deployed", lambda *_: exchanged)
    assert places(inv, evidence, ["y", "z"]).holds == {"y": "z", "z": "y"}
    result = evidence.results[0]
    failing = type(result)(feed, result.metrics, result.floors, {"y": 1.0, "z": 1.0}, {"y": False, "z": False})
    verdict = outputs_in_place(inv, Evidence(results=(failing,))).verdict
    assert verdict.kind is VerdictKind.COMPARISON_UNSOUND
    assert "'y' holds 'z', 'z' holds 'y'" in verdict.summary


def test_four_pairs_are_enough_for_a_sentence(investigate):
    pairs = {f"o{number}": f"o{number + 1}" for number in range(6)}
    assert said(pairs).count("holds") == 4
    assert out_of_order(investigate(MODEL, {"x": X}), pairs).kind is VerdictKind.COMPARISON_UNSOUND


def blamed(named=1, value="y"):
    return Blame((Culprit("work", "Neg", value),), named, 0.9)


def test_an_op_with_the_right_numbers_in_the_wrong_places_is_named(asked):
    inv, evidence = asked(PERMUTED)
    known = evidence.with_(local=local_errors(inv, evidence.feed), moved={"y": FINDING})
    verdict = of_an_op(inv, known, blamed())
    assert (verdict.kind, verdict.culprits[0].node) == (VerdictKind.LAYOUT, "work")
    assert "it explains 90 %" in verdict.summary
    assert "2 such ops explain" in of_an_op(inv, known, blamed(2)).summary
    assert of_an_op(inv, known, blamed(value="unseen")) is None
    assert of_an_op(inv, evidence, blamed()) is None  # no op was looked at


def test_an_op_with_other_numbers_is_no_matter_of_layout(asked):
    inv, evidence = asked(SCALED)
    assert of_an_op(inv, evidence.with_(local=local_errors(inv, evidence.feed)), blamed()) is None


def test_where_most_ops_are_in_another_layout_the_engine_is_and_no_op(asked):
    inv, evidence = asked(PERMUTED)
    local = local_errors(inv, evidence.feed)
    only = Local({"y": local.metrics["y"]}, local.floors, local.allowed, {}, local.arrays)
    everywhere = of_an_op(inv, evidence.with_(local=only, moved={"y": FINDING}), blamed())
    assert everywhere.culprits == ()
    assert of_an_op(inv, evidence.with_(local=only), blamed()).culprits  # no output is in another order


def test_the_share_of_suspects():
    one = np.float32([1])
    metrics = {"a": measure(one, one), "b": measure(one, one * 2)}
    floors = Floors({}, {"a": 1e-6, "b": 1e-6}, {}, "")
    local = Local(metrics, floors, OpLimits.plain(floors), {}, MemoryStore({}))
    assert share_of_suspects(Evidence(local=local)) == 0.5
    assert share_of_suspects(Evidence()) == 0.0
    assert share_of_suspects(Evidence(local=Local({}, floors, OpLimits.plain(floors), {}, MemoryStore({})))) == 0.0


def test_outputs_are_handed_over_in_another_layout_where_no_op_is_to_blame(asked):
    inv, evidence = asked(PERMUTED)
    assert layout(inv, evidence).verdict is None
    verdict = layout(inv, evidence.with_(moved={"y": FINDING})).verdict
    assert (verdict.kind, verdict.culprits) == (VerdictKind.LAYOUT, ())
    assert "output 'y' of" in verdict.summary
    both = layout(inv, evidence.with_(moved={"y": FINDING, "z": FINDING})).verdict
    assert "(and 1 more outputs)" in both.summary
    other = layout(inv, evidence.with_(moved={"z": FINDING})).verdict  # y fails too, and is not explained
    assert other.confidence_on("real") < both.confidence_on("real") == verdict.confidence_on("real")


@pytest.mark.parametrize(
    ("slug", "evidence", "words"),
    [
        ("layout", {"axes": [0, 2, 3, 1]}, "engine's layout"),
        ("shape", {}, "reshaping"),
        ("reordering", {"reversed": 1}, "flipping"),
        ("reordering", {}, "the order is the engine's"),
        ("transposition", {}, "the order is the engine's"),
        ("layout", {"axis": 1, "block": 4}, "engine's layout"),
    ],
)
def test_every_order_has_its_cure(slug, evidence, words):
    assert words in cure(PatternFinding(slug, "", 1.0, evidence))


def test_facts_are_the_evidence_of_every_output():
    assert facts({"y": FINDING}) == {"y": {"pattern": "transposition", "axes": [1, 0]}}


def test_the_cure_of_a_transposition_undoes_it():
    axes = (2, 0, 1)
    volume = np.random.default_rng(5).standard_normal((4, 5, 6)).astype(np.float32)
    found = moved(volume, volume.transpose(axes))
    assert found is not None
    back = [int(word) for word in cure(found).split("perm=[")[1].split("]")[0].split(",")]
    np.testing.assert_array_equal(volume.transpose(axes).transpose(back), volume)
