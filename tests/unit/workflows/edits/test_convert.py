import math

import numpy as np
import pytest

import models
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.errors import ModelError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.cutting.node_selection import NodeChoice
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.dtype import Precision
from tensortriage.workflows.edits.convert import FormatJudge, convert
from tensortriage.workflows.edits.convert_request import ConvertRequest
from tensortriage.workflows.edits.requests import ProofRequest, Source, Target

ZERO = "g (float[4] x) => (float[4] y) { y = Sub(x, x) }"
FEED = Feed("f", {"x": np.array([1.0, -2.0, 3.0, 4.0], np.float32)}, Origin.REAL)


def judged(target):
    reference = np.zeros(4, np.float32)
    judge = FormatJudge(models.parse(ZERO), Precision.FP16, NodeChoice())
    metrics = {"y": measure(reference, np.asarray(target, np.float32))}
    return judge.judge(FEED, metrics, {"y": reference})["y"]


def test_what_should_be_zero_is_judged_relative_to_the_inputs():
    """Half a unit in the last place of fp16 at 4 is 2**-9; the root mean square of the inputs is 2.7."""
    assert judged([0.0, 0.0, 0.0, 0.0]).within
    assert judged([2**-12, 0.0, 2**-12, 0.0]).within
    assert not judged([0.1, 0.0, 0.0, 0.0]).within


def test_a_nan_is_never_within():
    found = judged([math.nan, 0.0, 0.0, 0.0])
    assert not found.within


ATTENTION = """g (float[2,4,8] x, float[2,4] mask) => (float[2,4,8] y)
    <float one = {1}, float far = {-1e9}, int64[1] axis = {1}> {
        [turn] t = Transpose <perm = [0, 2, 1]> (x)
        [scores] s = MatMul(x, t)
        [unseen] u = Sub(one, mask)
        [rows] r = Unsqueeze(u, axis)
        [hide] h = Mul(r, far)
        [hidden] i = Add(s, h)
        [softmax] p = Softmax <axis = -1> (i)
        [mix] y = MatMul(p, x)
    }"""


def masked(folder, *, hidden=1, text=ATTENTION, **wanted):
    """Convert an attention with a mask of -1e9 to fp16, on data in which the last tokens of a row are hidden."""
    models.parse(text).save(folder / "m.onnx")
    mask = np.ones((2, 4), np.float32)
    mask[1, 4 - hidden :] = 0.0
    rng = np.random.default_rng(0)
    np.savez(folder / "m.npz", x=rng.standard_normal((2, 4, 8)).astype(np.float32), mask=mask)
    request = ConvertRequest(
        source=Source(folder / "m.onnx"), target=Target(folder / "out.onnx"), precision=Precision.FP16,
        proof=ProofRequest(feeding=FeedRequest(paths=[str(folder / "m.npz")])), **wanted,
    )  # fmt: skip
    return convert(request)


def test_a_mask_beyond_the_range_is_brought_into_it_and_said(tmp_path):
    done = masked(tmp_path, hidden=2)
    assert done.proof.verified
    assert [one.name for one in done.passes] == ["clamp-constants", "fp16"]
    assert "'far' (1 billion)" in done.notices[0]
    assert "32,752" in done.notices[0]
    written = Model.load(tmp_path / "out.onnx")
    assert -32752.0 in [float(written.graph.weight(name).min()) for name in written.graph.constants]


def test_a_mask_that_stays_float_is_left_alone(tmp_path):
    kept = NodeChoice(names=("hide", "hidden", "softmax"))
    done = masked(tmp_path, kept=kept)
    assert [one.name for one in done.passes] == ["fp16"]
    assert done.notices == ()


def test_a_constant_whose_size_matters_is_not_brought_into_range(tmp_path):
    text = ATTENTION.replace(
        "[mix] y = MatMul(p, x)", "[mix] z = MatMul(p, x) [wide] w = Mul(z, far) [back] y = Div(w, far)"
    )
    text = text.replace("[back] y = Div(w, far)", "[back] y = Sin(w)")
    with pytest.raises(ModelError) as refused:
        masked(tmp_path, text=text)
    assert refused.value.slug == "verify-failed"
    assert "('far')" in refused.value.message
    assert not (tmp_path / "out.onnx").exists()


def test_limits_that_say_there_is_none_are_left_alone(tmp_path):
    text = ATTENTION.replace("[mix] y", "[mix] z").replace("    }", "    [all] y = Clip(z, one, top) }")
    text = text.replace("float one", "float top = {3e38}, float one").replace("{-1e9}", "{-1e4}")
    assert masked(tmp_path, text=text).notices == ()
