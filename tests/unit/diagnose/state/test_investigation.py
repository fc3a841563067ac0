"""An investigation of another question leaves the first one as it is, and shares its lab, record and golden values."""

import dataclasses
import time

import pytest

from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.runs.case import Case
from tensortriage.runs.questions.question import Question
from tensortriage.values.dtype import Precision
from tensortriage_testing import feed_for, mlp, save_model


@pytest.fixture
def inv(tmp_path):
    proto = mlp(seed=3)
    feed = Feed("real", feed_for(proto), Origin.REAL)
    model = Model.load(save_model(proto, tmp_path / "mlp.onnx"))
    question = Question(model=model, feeds=[feed], reference=PLAIN, target=EngineSpec("onnxruntime"))
    with Case(tmp_path / "case") as case:
        investigation = Investigation.begin(question, case)
        yield investigation
        investigation.lab.close()


def test_another_target_is_asked_about_beside_the_first(inv):
    feed = inv.question.feeds[0]
    golden = inv.golden.of(feed)
    emulated = inv.about(inv.question.on_target(EngineSpec("emulate", {"precision": "fp16"}), kept=()))
    assert (inv.precision, emulated.precision) == (Precision.FP32, Precision.FP16)
    assert not emulated.question.random_too
    assert inv.question.random_too
    assert emulated.golden.of(feed) is golden  # of the same reference, model and feed
    assert emulated.lab.tally is inv.lab.tally


def test_golden_values_of_another_model_are_its_own(inv, tmp_path):
    other = Model.load(save_model(mlp(seed=4), tmp_path / "other.onnx"))
    inv.golden.of(inv.question.feeds[0])
    of_other = inv.about(inv.question.on_model(other))
    output = inv.model.outputs[0].name
    feed = of_other.question.feeds[0]
    assert (of_other.golden.of(feed)[output] != inv.golden.of(feed)[output]).any()


def test_steps_of_every_question_are_in_one_record(inv):
    inv.record.answered("the first?", "yes")
    doubting = inv.about(dataclasses.replace(inv.question, trusts_float64=False))
    doubting.record.answered("the second?", "no")
    assert [step.question for step in inv.record.steps] == ["the first?", "the second?"]


def test_every_second_and_every_run_belongs_to_one_step(inv):
    time.sleep(0.05)  # what nobody tells of belongs to the step that comes of it
    first = inv.record.answered("the first?", "yes")
    inv.golden.of(inv.question.feeds[0])
    second = inv.record.answered("the second?", "yes")
    time.sleep(0.05)
    third = inv.record.answered("the third?", "yes")
    assert first.seconds >= 0.05
    assert third.seconds >= 0.05
    assert (first.checks, second.checks, third.checks) == (0, 1, 0)
    assert first.seconds + second.seconds + third.seconds == pytest.approx(inv.record.cost.seconds, abs=0.02)
