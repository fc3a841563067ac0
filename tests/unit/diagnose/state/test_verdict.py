"""The closed set of verdicts, their exit codes, and which shapes of a sweep fail."""

import pytest

from tensortriage.diagnose.state.verdict import Cost, Culprit, ShapeRow, Verdict, VerdictKind
from tensortriage.model.provenance.origin import UNKNOWN


def test_what_is_explained_ends_with_0_a_problem_with_1_and_doubt_with_4():
    codes = {kind: kind.exit_code for kind in VerdictKind}
    assert codes.pop(VerdictKind.INCONCLUSIVE) == 4
    fine = {kind for kind, code in codes.items() if code == 0}
    assert fine == {VerdictKind.MATCH, VerdictKind.ROUNDING, VerdictKind.INPUT_SENSITIVE}
    assert {code for kind, code in codes.items() if kind not in fine} == {1}


@pytest.mark.parametrize("kind", VerdictKind)
def test_the_word_of_a_verdict_stands_for_its_kind(kind):
    assert Verdict(kind.value, 1.0, "so it is").kind is kind


def test_another_word_is_no_verdict():
    with pytest.raises(ValueError, match="maybe"):
        _ = Verdict("maybe", 1.0, "so it is").kind


@pytest.mark.parametrize(
    ("outcome", "fails"),
    [
        ("match", False),
        ("rounding", False),
        ("reference-failed", False),
        ("not-asked", False),
        ("wrong", True),
        ("build-failed", True),
        ("engine-crash", True),
    ],
)
def test_a_shape_fails_where_the_target_is_wrong_or_gives_no_answer(outcome, fails):
    assert ShapeRow("batch=8", outcome).fails is fails


def test_what_is_not_known_is_empty():
    """Files of earlier versions lack fields; these are their defaults."""
    culprit, verdict = Culprit("n", "Relu", "y"), Verdict("match", 1.0, "")
    assert (culprit.local_error, culprit.influence, culprit.floor_ratio, culprit.alike) == (None, None, None, 0)
    assert culprit.origin is UNKNOWN
    assert (verdict.inputs, verdict.remedy, verdict.repro, verdict.cost) == ("real", None, None, Cost())
    assert verdict.format == "tensortriage.verdict/1"
