"""A chain of MatMuls with the identity, in which one operand holds an outlier: only that one does not stand 8 bits."""

import numpy as np
import pytest

import models
import running
from quantization_aware import IDENTITIES
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.precision.goal import ErrorGoal, GoalSample
from tensortriage.precision.quantization.calibrated_model import OnnxRuntimeQuantizer, QuantizeOptions
from tensortriage.precision.quantization.unquantized_nodes import QuantizedNodes
from tensortriage.runs.workspace import Workspace


@pytest.fixture
def quantized(tmp_path):
    rng = np.random.default_rng(0)
    big = rng.uniform(-1, 1, (16, 8)).astype(np.float32)
    big[0, 0] = 60.0
    feed = {"x": rng.uniform(-1, 1, (16, 8)).astype(np.float32), "big": big}
    model = models.parse(IDENTITIES)
    sample = GoalSample(Feed("f", feed, Origin.REAL), running.run(model, feed))
    quantizer = OnnxRuntimeQuantizer(model, [sample.feed], QuantizeOptions(), folder=tmp_path)
    return quantizer, sample


def test_the_fewest_nodes_and_the_written_model_agree_with_the_switches(quantized):
    quantizer, sample = quantized
    goal = ErrorGoal({"y": 10 ** (-32 / 20)}, "SQNR >= 32 dB")
    with Workspace() as workspace:
        whole = quantizer.quantized(float_weights=True)
        with QuantizedNodes(whole, [sample], goal, workspace=workspace) as nodes:
            assert set(nodes.items) == {"first", "outlier", "last"}
            assert not nodes.read(()).within
            found = nodes.fewest()
            # 1-minimal: nothing of it can go
            assert all(not nodes.read(set(found.kept) - {node}).within for node in found.kept)
    assert found.reading.within
    assert "outlier" in found.kept
    written = running.run(quantizer.quantized(found.kept), sample.feed.tensors)
    assert goal.judge([sample], [written]).error == pytest.approx(found.reading.error, rel=1e-5)


def test_nothing_is_left_float_without_need_and_none_when_it_cannot_be_reached(quantized):
    quantizer, sample = quantized
    whole = quantizer.quantized(float_weights=True)
    with Workspace() as workspace:
        with QuantizedNodes(whole, [sample], ErrorGoal({"y": 1.0}, ""), workspace=workspace) as nodes:
            assert (nodes.fewest().kept, nodes.runs) == ((), 1)
        bent = GoalSample(sample.feed, {"y": sample.outputs["y"] + 1.0})
        with QuantizedNodes(whole, [bent], ErrorGoal({"y": 1e-3}, ""), workspace=workspace) as nodes:
            assert nodes.fewest() is None
