"""The verdict is written of a conclusion and of what is found out after it: each part has its place in it."""

import dataclasses

import pytest

from models import write
from tensortriage.compare.patterns.anatomy import Anatomy
from tensortriage.diagnose.climb import ClimbResult
from tensortriage.diagnose.measurements.dissection import Dissection
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.confidence import IN_ANOTHER_LAYOUT
from tensortriage.diagnose.state.configuration import Configuration
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, Remedy, ReproFacts, ShapeRow, VerdictKind
from tensortriage.engines.spec import PLAIN
from tensortriage.model.lint.training import in_training
from tensortriage.model.model import Model
from tensortriage.workflows.diagnosis.culprit_origins import with_origin
from tensortriage.workflows.diagnosis.verdict_of import FoundAfter, verdict_of

MODEL = """<ir_version: 8, opset_import: ["": 17]>
  g (float[2] x) => (float[2] y) <bool train = {1}, float ratio = {0.5}> { y = Dropout(x, ratio, train) }"""
REDUCE, LOOK = "triage debug reduce m.onnx -o reduced.onnx", "triage run m.onnx"
FAULT = Conclusion(
    VerdictKind.LOCAL_FAULT, IN_ANOTHER_LAYOUT, "it is wrong", (Culprit("gelu", "Gelu", "v", 0.03),), (REDUCE, LOOK)
)
REPRO = ReproFacts("repro", ("gelu",), "wrong", confirmed=True)
REMEDY = Remedy("keep-fp32", "1 op in fp32")


@pytest.fixture
def written(investigate):
    """Return a function that writes the verdict of a fault, and the folder of its case."""
    inv = investigate(MODEL, {"x": [1.0, 2.0]})

    def write(evidence=None, graphs=(), **found):
        return verdict_of(ClimbResult(FAULT, evidence or Evidence(), inv), FoundAfter(**found), graphs=graphs)

    return write, inv


def test_a_confirmed_repro_of_one_op_comes_first_and_is_not_reduced(written):
    write, inv = written
    case = inv.lab.case.folder
    script, report = f"python {case}/repro/repro.py", f"triage report {case} --format markdown -o issue.md"
    told = write(repro=REPRO)
    assert told.headline == "Gelu gelu is off by 3 %"
    assert told.next == (script, report, LOOK)
    several = dataclasses.replace(REPRO, nodes=("gelu", "add"))
    assert write(repro=several).next == (script, report, REDUCE, LOOK)
    assert write(repro=dataclasses.replace(REPRO, confirmed=False)).next == (REDUCE, LOOK, script)


def test_a_configuration_that_works_is_the_first_command(written):
    write, inv = written
    config = Configuration(PLAIN, "all", inv.question.target)
    first, *others = write(Evidence(configuration=config)).next
    assert first.startswith("triage diagnose")
    assert str(PLAIN) in first
    assert others == [REDUCE, LOOK]


def test_options_that_cure_stand_behind_the_conclusion(written):
    _, inv = written
    target = inv.question.target
    works, given = (target.with_options({"optimization": level}) for level in ("none", "extended"))
    inv = inv.about(dataclasses.replace(inv.question, target=given))

    def summary(cure):
        evidence = Evidence(configuration=Configuration(cure, "extended", given))
        return verdict_of(ClimbResult(FAULT, evidence, inv), FoundAfter()).summary

    assert summary(works) == "it is wrong; it is right with optimization none instead of extended"
    assert summary(works.with_options({"optimization": "none", "precision": "fp16"})) == "it is wrong"


def test_what_is_known_beside_the_conclusion_stands_behind_it(written):
    write, inv = written
    row = ShapeRow("batch=2", "wrong", output="y", error=0.5)
    evidence = Evidence(shapes=(row,), two_targets="both are outside", in_training=in_training(inv.model))
    verdict = write(evidence)
    clauses = verdict.summary.split("; ")
    assert clauses[0] == "it is wrong"
    assert clauses[1].startswith("fails at batch=2")
    assert "of the two targets, both are outside" in clauses
    assert clauses[-1].startswith("the model itself was left in training mode: Dropout")
    assert verdict.shapes == (row,)
    assert write().summary == "it is wrong"


def test_a_verdict_holds_all_that_was_found_out(written):
    write, inv = written
    inv.record.answered("the first?", "yes")
    verdict = write(sufficiency=("good",), remedy=REMEDY)
    assert (verdict.kind, verdict.confidence, verdict.inputs) == (VerdictKind.LOCAL_FAULT, 0.97, "real")
    assert (verdict.sufficiency, verdict.remedy, verdict.repro) == (("good",), REMEDY, None)
    assert [step.question for step in verdict.steps] == ["the first?"]
    assert verdict.cost.checks == 0


def test_culprits_have_the_pattern_of_their_own_value(written):
    write, _ = written
    pattern = Anatomy(())
    verdict = write(dissection=Dissection(["one", "two", "three", "four", "five"], {"v": pattern}))
    assert verdict.anatomy == ("one", "two", "three", "four")
    assert (verdict.culprits[0].anatomy, verdict.culprits[0].effect) == (pattern.sentences, pattern.effect)


QUANTIZED = """<ir_version: 8, opset_import: ["": 17]>
  g (float[2] x) => (float[2] y) <float scale = {0.5}, float[2] w = {1, 2}, int8 zero = {0}> {
    [quantize] q = QuantizeLinear(w, scale, zero)
    [dequantize] d = DequantizeLinear(q, scale, zero)
    [product] p = Mul(x, d)
    [plus] y = Add(p, x) }"""
OWN = """<ir_version: 8, opset_import: ["": 17]>
  g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { [product] own = Mul(x, w) [plus] y = Add(own, x) }"""


@pytest.mark.parametrize(
    ("culprit", "at"),
    [
        (Culprit("quantize", "QuantizeLinear", "q"), "own"),
        (Culprit("dequantize", "DequantizeLinear", "d"), "own"),
        (Culprit("plus", "Add", "y"), ""),
        (Culprit("elsewhere", "Add", "z"), ""),
    ],
)
def test_an_op_of_another_file_is_shown_where_the_users_model_is_wrong_first(tmp_path, culprit, at):
    graphs = [
        Model.load(write(tmp_path / f"{number}.onnx", text)).graph for number, text in enumerate((OWN, QUANTIZED))
    ]
    assert with_origin(culprit, graphs).shown_at == at
