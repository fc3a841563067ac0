"""What ``--fix`` wrote, or why it wrote nothing."""

from pathlib import Path

import pytest

from tensortriage.diagnose.state.verdict import Conclusion, Remedy, VerdictKind
from tensortriage.workflows.diagnosis.fix_words import REMEDY, fix_words

MODEL = "g (float[2] x) => (float[2] y) { y = Neg(x) }"
FAULT = Conclusion(VerdictKind.LOCAL_FAULT, 0.9, "")
FILE = Path("f.onnx")


@pytest.fixture
def inv(investigate):
    return investigate(MODEL, {"x": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (VerdictKind.MATCH, "nothing is wrong"),
        (VerdictKind.ROUNDING, "triage debug precision writes a model in more bits"),
        (VerdictKind.ENGINE_HANG, "a verdict of engine-hang has no fix that could be tried"),
    ],
)
def test_nothing_written_has_a_reason(inv, kind, words):
    assert words in fix_words(inv, Conclusion(kind, 0.9, ""), None, FILE)
    assert fix_words(inv, Conclusion(kind, 0.9, ""), None, None) == ""


def test_the_step_that_tried_changes_is_the_reason_where_there_is_one(inv):
    inv.record.answered(REMEDY, "nothing that was tried: folding")
    assert fix_words(inv, FAULT, None, FILE) == "nothing is written to f.onnx: nothing that was tried: folding"


def test_a_remedy_says_what_is_written_or_why_nothing_is(inv):
    option = Remedy("engine-option", "no fusion", note="it is an option of the engine")
    assert fix_words(inv, FAULT, option, FILE) == "nothing is written to f.onnx: it is an option of the engine"
    typed = Remedy("keep-fp32", "1 op in fp32", file="f.onnx", note="run it as typed")
    assert fix_words(inv, FAULT, typed, FILE) == "f.onnx is written: 1 op in fp32; run it as typed"
    assert fix_words(inv, FAULT, typed, None) == ""
