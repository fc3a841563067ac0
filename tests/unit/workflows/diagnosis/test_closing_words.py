"""What a verdict says first, and what it asks for last."""

import dataclasses
from pathlib import Path

from tensortriage.diagnose.state.verdict import Culprit, ReproFacts, Verdict
from tensortriage.workflows.diagnosis.closing_words import with_closing_words

REDUCE, LOOK, SCRIPT = "triage debug reduce m.onnx -o reduced.onnx", "triage run m.onnx", "python case/repro/repro.py"
REPRO = ReproFacts("repro", ("gelu",), "wrong", confirmed=True)
FAULT = Verdict("local-fault", 0.9, "", (Culprit("gelu", "Gelu", "v", 0.03),), next=(REDUCE, LOOK, SCRIPT), repro=REPRO)
REPORT = "triage report 'my case' --format markdown -o issue.md"


def test_a_confirmed_repro_of_one_op_comes_first_and_is_not_reduced():
    told = with_closing_words(FAULT, Path("my case"))
    assert told.headline == "Gelu gelu is off by 3 %"
    assert told.next == (SCRIPT, REPORT, LOOK)


def test_several_ops_can_be_reduced_still():
    several = dataclasses.replace(FAULT, repro=dataclasses.replace(REPRO, nodes=("gelu", "add")))
    assert with_closing_words(several, Path("my case")).next == (SCRIPT, REPORT, REDUCE, LOOK)


def test_a_repro_that_does_not_fail_again_stays_last():
    passes = dataclasses.replace(FAULT, repro=dataclasses.replace(REPRO, confirmed=False))
    assert with_closing_words(passes, Path("my case")).next == FAULT.next
