"""A floor that is no limit acquits nobody."""

import dataclasses

import numpy as np
import pytest

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.rungs.premises.comparable_outputs import compare_outputs
from tensortriage.diagnose.rungs.premises.within_noise import within_noise
from tensortriage.diagnose.state.verdict import VerdictKind

CHAOS = """g (float[4, 64] x) => (float[4, 64] y) {
    k = Constant <value = float {3000000.0}> ()
    large = Mul (x, k)
    wave = Sin (large)
    y = Identity (wave)
}"""
"""A sine of 1e7, where neighbouring numbers are a radian apart."""
FEED = {"x": np.random.default_rng(0).normal(0, 16, (4, 64)).astype(np.float32)}


@pytest.fixture
def asked(investigate):
    def ask(text, feed, error, floor=None, target="onnxruntime"):
        inv = investigate(text, feed, target=target)
        evidence = Evidence().with_(**compare_outputs(inv, Evidence()).findings)
        (result,) = evidence.results
        floors = result.floors if floor is None else dataclasses.replace(result.floors, fp32={"y": floor})
        return inv, evidence.with_(results=(dataclasses.replace(result, floors=floors, errors={"y": error}),))

    return ask


def test_the_op_behind_which_healthy_engines_part_is_named(asked, last_step):
    inv, evidence = asked(CHAOS, FEED, 0.08)
    assert evidence.worst_feed.floors.fp32["y"] > 0.1
    verdict = within_noise(inv, evidence).verdict
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    (culprit,) = verdict.culprits
    assert (culprit.op_type, culprit.value) == ("Sin", "wave")
    assert "amplifies rounding: they differ by" in verdict.summary
    assert last_step(inv).evidence["wrong_alone"] == []


def test_what_is_lost_is_lost(asked):
    verdict = within_noise(*asked(CHAOS, FEED, 0.7)).verdict
    assert (verdict.kind, verdict.lost) == (VerdictKind.ROUNDING, True)


@pytest.mark.parametrize("floor", [0.4, float("nan"), float("inf")])
def test_no_floor_of_a_tenth_acquits(asked, floor):
    assert within_noise(*asked(CHAOS, FEED, 0.01, floor)).verdict is not None


@pytest.mark.parametrize(("error", "floor"), [(0.0, 0.4), (1e-7, 0.4), (1e-4, 1e-3)])
def test_equal_outputs_and_floors_that_are_limits_acquit(asked, error, floor):
    assert within_noise(*asked(CHAOS, FEED, error, floor)).verdict is None


def test_a_number_on_the_edge_of_the_next_is_decided_by_rounding(asked):
    text = """g (float16[2, 6] x) => (int64[2, 6] y) {
        part = Sigmoid (x)
        y = Cast <to = 7> (part)
    }"""
    feed = {"x": np.random.default_rng(18).uniform(6, 14, (2, 6)).astype(np.float16)}  # 1.0 in fp16 from 8.4 on
    verdict = within_noise(*asked(text, feed, 0.9)).verdict
    assert (verdict.kind, verdict.lost) == (VerdictKind.ROUNDING, True)
    assert "since Cast '" in verdict.summary
    assert "rounding decides" in verdict.summary


def test_a_tie_that_a_floor_decides_is_told_as_one(asked):
    text = """g (float16[2, 6] x) => (float16[2, 6] y) {
        part = Sigmoid (x)
        y = Floor (part)
    }"""
    feed = {"x": np.random.default_rng(18).uniform(6, 14, (2, 6)).astype(np.float16)}
    verdict = within_noise(*asked(text, feed, 0.9)).verdict
    assert "since Floor '" in verdict.summary
    assert "rounding decides ties: they differ by" in verdict.summary
