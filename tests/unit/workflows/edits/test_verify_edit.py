"""Passes that are planted wrong must be refused by their own name; real ones must be proven."""

import numpy as np
import onnx_ir as ir
import pytest

import models
from tensortriage.errors import ModelError, UsageError
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.edits.requests import ProofRequest, Verify
from tensortriage.workflows.edits.verify_edit import EditStage, prove


def scaled(model, factor):
    """Return a model whose first weight is scaled: a pass that changes the answer by that factor."""
    clone = model.clone().ir
    value = clone.graph.initializers["w2"]
    value.const_value = ir.tensor(value.const_value.numpy() * np.float32(factor), name="w2")
    return Model.from_ir(clone)


def copied(model):
    return Model.from_ir(model.clone().ir)


def test_what_did_not_change_is_proven():
    model = models.mlp()
    proof = prove([EditStage("load", model), EditStage("copy", copied(model))], ProofRequest())
    assert proof.verified
    assert (proof.inputs, proof.engine) == ("random", "onnxruntime:optimization=none")
    assert [(o.name, o.relative_rms_error) for o in proof.outputs] == [("y", 0.0)]


def test_the_pass_that_moves_an_output_is_named():
    model = models.mlp()
    wrong = scaled(model, 1.01)
    stages = [
        EditStage("load", model),
        EditStage("good", copied(model)),
        EditStage("bad", wrong),
        EditStage("later", copied(wrong)),
    ]
    with pytest.raises(ModelError) as caught:
        prove(stages, ProofRequest())
    assert caught.value.slug == "verify-failed"
    assert "'bad'" in caught.value.message
    assert "'y'" in caught.value.message


def test_an_error_below_the_fp32_floor_is_none():
    model = models.mlp()
    barely = scaled(model, 1 + 2**-23)
    assert prove([EditStage("load", model), EditStage("pass", barely)], ProofRequest()).verified


def test_the_pass_after_which_the_model_does_not_run_is_named():
    model = models.branchy()
    clone = model.clone().ir
    clone.graph.node("left").op_type = "Mystery"
    stages = [EditStage("load", model), EditStage("good", copied(model)), EditStage("bad", Model.from_ir(clone))]
    with pytest.raises(ModelError) as caught:
        prove(stages, ProofRequest())
    assert caught.value.slug == "verify-failed"
    assert "'bad'" in caught.value.message


UNKNOWN = '<ir_version: 10, opset_import: ["": 18, "own": 1]> g (float[2] x) => (float[2] y) { [m] y = own.Mystery(x) }'
RANDOM = "g (float[2] x) => (float[2] y) { [r] r = RandomNormalLike(x) [s] y = Add(r, x) }"
LOST = "g (float[2] x) => (float[2] y) { [n] a = Abs(x) [m] b = Neg(a) [o] c = Sub(b, a) [l] y = Log(c) }"


@pytest.mark.parametrize(
    ("text", "reason"),
    [(UNKNOWN, "does not run"), (LOST, "NaN or Inf")],
    ids=["op", "nan"],
)
def test_what_cannot_be_proven_is_said_and_is_an_error_when_asked_for(text, reason):
    model = models.parse(text)
    stages = [EditStage("load", model), EditStage("copy", copied(model))]
    proof = prove(stages, ProofRequest())
    assert not proof.verified
    assert reason in proof.reason
    with pytest.raises(UsageError) as caught:
        prove(stages, ProofRequest(verify=Verify.ALWAYS))
    assert caught.value.slug == "verify-impossible"


def test_a_model_that_draws_numbers_is_not_blamed_on_a_pass():
    model, other = models.parse(RANDOM), models.parse(RANDOM.replace("Add(r, x)", "Sub(r, x)"))
    proof = prove([EditStage("load", model), EditStage("pass", other)], ProofRequest())
    assert not proof.verified
    assert "run to run" in proof.reason


def test_nothing_is_run_when_not_asked_for():
    model = models.mlp()
    proof = prove([EditStage("load", model), EditStage("bad", scaled(model, 2))], ProofRequest(verify=Verify.NEVER))
    assert not proof.verified
    assert proof.feeds == ()


def test_without_outputs_only_running_is_proven():
    model = models.mlp()
    proof = prove([EditStage("load", model), EditStage("bad", scaled(model, 2))], ProofRequest(outputs=()))
    assert proof.verified
    assert proof.outputs == ()


def test_the_users_data_are_used_and_must_fit(tmp_path):
    model = models.mlp()
    np.savez(tmp_path / "feed.npz", x=np.ones((3, 4), np.float32))
    stages = [EditStage("load", model), EditStage("copy", copied(model))]
    proof = prove(stages, ProofRequest(feeding=FeedRequest(paths=[str(tmp_path / "feed.npz")])))
    assert proof.inputs == "real"
    np.savez(tmp_path / "wrong.npz", z=np.ones((3, 4), np.float32))
    with pytest.raises(Exception, match="z"):
        prove(stages, ProofRequest(feeding=FeedRequest(paths=[str(tmp_path / "wrong.npz")])))
