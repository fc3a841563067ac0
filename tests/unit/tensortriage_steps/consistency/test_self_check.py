"""What an engine says of itself: which claim it breaks, where it parts first, and what is not claimed of a model."""

import numpy as np
import pytest

from diagnosing import named
from engine_scripts import engine_file
from models import parse
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.synthetic.batch_rows import BatchAxes, Rows
from tensortriage.model.model import Model
from tensortriage.runs.case import Case
from tensortriage.runs.lab import Lab
from tensortriage_steps.consistency.relations import ClaimKind, row_relations, whole_relations
from tensortriage_steps.consistency.self_check import ClaimOutcome, SelfCheck
from tensortriage_testing import save_model

ROWS_ALONE = """g (float["n", 4] x) => (float["n", 4] y) {
  a = Sin(x)
  b = Mul(a, a)
  y = Add(b, x)
}"""
MIXING = """g (float["n", 4] x) => (float["n", 4] y) {
  axes = Constant<value: tensor = int64[1] {0}>()
  m = ReduceMean<keepdims: int = 1>(x, axes)
  y = Sub(x, m)
}"""
"""A row of y depends on all rows of x, by the definition of the mean over axis 0."""


@pytest.fixture
def lab(tmp_path):
    with Case(tmp_path / "case") as case:
        lab = Lab(case)
        yield lab
        lab.close()


@pytest.fixture
def model(tmp_path):
    return Model.load(save_model(named(ROWS_ALONE, "sine", "square", "sum"), tmp_path / "m.onnx"))


def faulty(folder, **fault):
    """Return the spec of an engine with a planted fault."""
    file = engine_file()
    return EngineSpec("script", {"file": str(file), **fault})


def claims(count=5):
    """Return the claims about rows of a batch, by kind."""
    rng = np.random.default_rng(2)
    made = [{"x": rng.standard_normal((1, 4)).astype(np.float32)} for _ in range(count)]
    return {
        relation.kind: relation for relation in row_relations(Rows(BatchAxes({"x": 0}, None), made, {}, 0, Origin.REAL))
    }


def test_what_an_engine_breaks_is_told_with_the_first_op_whose_rows_part(tmp_path, lab, model):
    check = SelfCheck(lab, model, faulty(tmp_path, kind="rows-above", node="square", amount="4"))
    broken = check.ask(claims()[ClaimKind.MOVED])
    assert (broken.outcome, broken.node, broken.op_type, broken.value) == ("broken", "square", "Mul", "b")
    assert broken.parting.value == "y"
    assert broken.parting.difference > 100 * broken.parting.allowed
    # row 4 of the left run has the content of row 0: it parts from its copy, which is row 0 of the right one
    assert 4 in broken.parting.rows
    assert "output 'y' differs" in broken.answer


def test_the_same_engine_holds_the_claims_that_its_fault_does_not_touch(tmp_path, lab, model):
    check = SelfCheck(lab, model, faulty(tmp_path, kind="rows-above", node="square", amount="4"))
    assert check.ask(claims()[ClaimKind.TWICE]).outcome == "holds"
    again = next(each for each in whole_relations(claims()[ClaimKind.TWICE].left, streams=False))
    assert (again.kind, check.ask(again).outcome) == (ClaimKind.AGAIN, "holds")


def test_a_healthy_engine_holds_every_claim_about_rows(lab, model):
    check = SelfCheck(lab, model, EngineSpec("onnxruntime"))
    assert {check.ask(claim).outcome for claim in claims().values()} == {ClaimOutcome.HOLDS.value}


def test_what_the_model_itself_mixes_is_not_claimed_and_told_by_its_op(lab):
    check = SelfCheck(lab, parse(MIXING), EngineSpec("onnxruntime"))
    answer = check.ask(claims()[ClaimKind.NEIGHBOURS])
    assert (answer.outcome, answer.op_type) == ("not-claimed", "ReduceMean")
    assert answer.parting is None


def test_an_engine_that_fails_on_the_second_batch_is_told_by_the_batch(tmp_path, lab, model):
    (tmp_path / "picky.py").write_text(
        "from tensortriage_testing import FaultyEngine\n"
        "class Session:\n"
        "    def __init__(self, own): self.own = own\n"
        "    def run(self, feed):\n"
        "        if len(feed['x']) == 1: raise RuntimeError('one row is too few')\n"
        "        return self.own.run(feed)\n"
        "class Engine(FaultyEngine):\n"
        "    def compile(self, model, options): return Session(super().compile(model, options))\n"
    )
    check = SelfCheck(lab, model, EngineSpec("script", {"file": str(tmp_path / "picky.py")}))
    claim = claims()[ClaimKind.ALONE]
    answer = check.ask(claim)
    assert answer.outcome == "refused"
    assert claim.right.name in answer.answer
    assert "one row is too few" in answer.answer
    assert check.ask(claims()[ClaimKind.TWICE]).outcome == "holds"  # it can be asked on


def test_at_sight_an_engine_that_is_equal_is_not_asked_whether_the_model_is(lab, model):
    claim = claims()[ClaimKind.TWICE]
    at_sight = SelfCheck(lab, model, EngineSpec("onnxruntime"), at_sight=True)
    before = lab.tally.checks
    assert at_sight.ask(claim).outcome == "holds"
    assert lab.tally.checks - before == 1  # left and right are one run; no evaluation of the model


def test_a_run_again_is_another_run(lab, model):
    feed = Feed("f", {"x": np.ones((2, 4), np.float32)}, Origin.REAL)
    (again,) = [each for each in whole_relations(feed, streams=False) if each.kind is ClaimKind.AGAIN]
    before = lab.tally.checks
    assert SelfCheck(lab, model, EngineSpec("onnxruntime"), at_sight=True).ask(again).outcome == "holds"
    assert lab.tally.checks - before == 2
