"""What can be chosen in a model, and in which opset a format can say most of it."""

import pytest

import models
from tensortriage.errors import UsageError
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.precision.selection.switchable_model import NEWER_OPSET, raised, stage_of
from tensortriage.values.dtype import Precision

TEXT = """g (float[2,3] x) => (float[3,2] y) <float[1] c = {3}> {
    [mul] m = Mul(x, c) [turn] t = Transpose(m) [exp] e = Exp(t) [round] y = Round(e)
}"""
CONV = "g (float[1,1,4,4] x, float[1,1,3,3] w) => (float[1,1,2,2] y) { [conv] y = Conv(x, w) }"


def choices(text, precision=Precision.FP16, *, typed=True):
    model = models.parse(text)
    return stage_of(model, precision, value_specs(model), typed=typed)


def test_nodes_that_round_are_chosen_and_those_that_hand_numbers_on_are_not():
    stage = choices(TEXT)
    assert stage.items == ("mul", "exp", "round")
    assert stage.movers == {"turn"}
    assert stage.fixed == ()
    assert stage.precision is Precision.FP16


def test_what_the_format_cannot_write_stays_as_it_is():
    """Before opset 22 Round takes fp16 but no bf16 (onnx.ai), which only types have to say."""
    assert choices(TEXT, Precision.BF16).fixed == ("round",)
    assert choices(TEXT, Precision.BF16).items == ("mul", "exp")
    assert choices(TEXT, Precision.BF16, typed=False).fixed == ()


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("g (int64[2] x) => (int64[2] y) { [add] y = Add(x, x) }", Precision.FP16),
        ("g (float[2] x) => (float[2] y) { [round] y = Round(x) }", Precision.BF16),
    ],
)
def test_a_model_without_anything_to_choose_is_an_error(text, precision):
    with pytest.raises(UsageError) as caught:
        choices(text, precision)
    assert caught.value.slug == "precision-nothing-to-choose"
    assert precision.value in caught.value.message


def test_bf16_is_written_in_an_opset_that_has_it():
    model = models.parse(CONV)
    assert model.opset < NEWER_OPSET
    newer = raised(model, Precision.BF16)
    assert newer.opset == NEWER_OPSET
    assert [node.name for node in newer.graph.nodes] == ["conv"]
    assert raised(newer, Precision.BF16) is newer


def test_a_model_that_gains_nothing_keeps_its_opset():
    model = models.parse("g (float[2] x) => (float[2] y) { [mul] y = Mul(x, x) }")
    assert raised(model, Precision.BF16) is model
    assert raised(models.parse(CONV), Precision.FP16).opset < NEWER_OPSET
