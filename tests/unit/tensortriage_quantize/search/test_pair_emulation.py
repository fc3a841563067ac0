"""Leaving nodes unquantized, in a chain of MatMuls with the identity: only the operand with an outlier needs it."""

import contextlib

import numpy as np
import pytest

import models
import running
from quantization_aware import IDENTITIES
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.precision.goal import ErrorGoal, GoalSample
from tensortriage.runs.case import Case
from tensortriage.runs.lab import Lab
from tensortriage_quantize.calibration.calibrated_model import ModelQuantizer, QuantizeOptions
from tensortriage_quantize.search.pair_emulation import of_quantizers


@pytest.fixture
def quantized(tmp_path):
    rng = np.random.default_rng(0)
    big = rng.uniform(-1, 1, (16, 8)).astype(np.float32)
    big[0, 0] = 60.0
    feed = {"x": rng.uniform(-1, 1, (16, 8)).astype(np.float32), "big": big}
    model = models.parse(IDENTITIES)
    sample = GoalSample(Feed("f", feed, Origin.REAL), running.run(model, feed))
    quantizer = ModelQuantizer(model, [sample.feed], QuantizeOptions(), folder=tmp_path, lab=Lab())
    return quantizer, sample


def test_the_fewest_nodes_and_the_written_model_agree_with_the_switches(quantized):
    quantizer, sample = quantized
    goal = ErrorGoal({"y": 10 ** (-32 / 20)}, "SQNR >= 32 dB")
    with Lab() as lab:
        whole = quantizer.quantized(float_weights=True)
        with contextlib.closing(of_quantizers(whole, [sample], goal, lab=lab)) as nodes:
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
    with Lab() as lab:
        with contextlib.closing(of_quantizers(whole, [sample], ErrorGoal({"y": 1.0}, ""), lab=lab)) as nodes:
            assert (nodes.fewest().kept, nodes.runs) == ((), 1)
        bent = GoalSample(sample.feed, {"y": sample.outputs["y"] + 1.0})
        with contextlib.closing(of_quantizers(whole, [bent], ErrorGoal({"y": 1e-3}, ""), lab=lab)) as nodes:
            assert nodes.fewest() is None


def test_what_was_read_is_not_read_again_in_the_case_unless_another_goal_is_set(quantized, tmp_path):
    quantizer, sample = quantized
    whole = quantizer.quantized(float_weights=True)
    with Case(tmp_path / "case") as case:
        for goal, asked in ((1e-2, True), (1e-2, False), (1e-3, True)):
            with Lab(case) as lab:
                nodes = of_quantizers(whole, [sample], ErrorGoal({"y": goal}, f"{goal}"), lab=lab)
                with contextlib.closing(nodes):
                    nodes.fewest()
                assert (nodes.runs > 0, lab.tally.builds, lab.tally.checks) == (asked, int(asked), nodes.runs)


def test_the_time_to_come_is_told(quantized):
    quantizer, sample = quantized
    heard = []
    with Lab(progress=heard.append) as lab:
        nodes = of_quantizers(quantizer.quantized(float_weights=True), [sample], ErrorGoal({"y": 1e-3}, ""), lab=lab)
        with contextlib.closing(nodes):
            assert set(nodes.influences.alone) <= set(nodes.items)
    assert heard
    assert all(
        text.startswith("measuring the influence of each node's rounding: ") and text.endswith(" to go")
        for text in heard
    )
