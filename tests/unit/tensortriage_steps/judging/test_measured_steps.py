"""Steps as they are measured: on the reference's states, on the target's own, in parts of caches, with what fails."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from engine_scripts import engine_file
from models import of_nodes, parse
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import DataError, EngineError
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.lab import Lab
from tensortriage_steps.feeds.step_feeds import StepFeeds
from tensortriage_steps.judging.measured_steps import MeasuredSteps
from tensortriage_steps.request import StepsRequest

BF16 = EngineSpec("emulate", {"precision": "bf16"})
CELL = "g (float[4] x, float[4] h0) => (float[4] hn) { [add] s = Add(x, h0) [tanh] hn = Tanh(s) }"
COUNTING = """
    g (int64[1] count_in) => (float[1] row, int64[1] count_out) <float[3] table = {1, 2, 3}, int64[1] one = {1}> {
        [look] row = Gather(table, count_in)
        [more] count_out = Add(count_in, one)
    }"""
"""Fails at the fourth step."""
BROKEN = "g (float[2] x, float[2] h0) => (float[2] hn) { [s] s = Add(x, h0) [r] hn = Sqrt(s) }"


@contextlib.contextmanager
def measuring(folder, text, *, target=BF16, drift=True, sample=None, **given):
    """Yield the steps of a model of ONNX text."""
    model = parse(text) if isinstance(text, str) else text
    paths = ()
    if sample is not None:
        np.savez(folder / "sample.npz", **sample)
        paths = (str(folder / "sample.npz"),)
    request = StepsRequest(
        model=Path("m.onnx"), target=str(target), feeding=FeedRequest(paths=paths), **{"steps": 4, **given}
    )
    with Lab() as lab:
        feeds = StepFeeds(request, model)
        yield MeasuredSteps(lab, model, feeds, reference=PLAIN, target=target, drift=drift)


def rows_of(steps, heard=None):
    """Return all steps."""
    return list(steps.rows((heard if heard is not None else []).append))


def test_a_narrow_engine_is_right_on_the_states_of_the_reference_and_drifts_on_its_own(tmp_path):
    heard, sample = [], {"x": np.float32([0.1, 0.23, 0.37, 0.7])}
    with measuring(tmp_path, CELL, sample=sample) as steps:
        rows = rows_of(steps, heard)
        assert steps.notes == []
        assert steps.open_feeds == {}
    assert heard == [f"step {number}" for number in range(4)]
    assert [(row.step, row.length, row.failure) for row in rows] == [(number, 0, "") for number in range(4)]
    for row in rows:
        (value,), (drifted,) = row.values, row.drifted
        assert (value.value, value.within, value.part, value.ratio) == ("hn", True, "", value.error / value.allowed)
        assert 0 < value.error < 4 * 2**-9  # two operands and two results are rounded, and all numbers are positive
        assert drifted.within
    assert rows[0].drifted[0].error == rows[0].values[0].error  # both begin with one state
    assert rows[3].drifted[0].allowed != rows[3].values[0].allowed


def test_drift_is_measured_only_where_it_is_asked_for_and_there_are_states(tmp_path):
    with measuring(tmp_path, CELL, drift=False, steps=2) as steps:
        assert [row.drifted for row in rows_of(steps)] == [(), ()]
    tokens = "g (int64[1, S] input_ids) => (float[1, S] logits) { [as] logits = Cast<to=1>(input_ids) }"
    with measuring(tmp_path, tokens, steps=1, sample={"input_ids": np.array([[1, 2]])}) as steps:
        (row,) = rows_of(steps)
        assert (row.drifted, row.length) == ((), 2)


def test_a_step_at_which_the_reference_fails_is_named(tmp_path):
    sample = {"count_in": np.array([0])}
    with measuring(tmp_path, COUNTING, target=PLAIN, sample=sample, carry=("count_out=count_in",)) as steps:
        made = steps.rows(lambda text: None)
        assert [next(made).step for _ in range(3)] == [0, 1, 2]
        with pytest.raises(EngineError, match="at step 3: ") as caught:
            next(made)
        assert "--steps 3" in caught.value.cure
    sample = {"count_in": np.array([9])}
    with measuring(tmp_path, COUNTING, target=PLAIN, sample=sample, carry=("count_out=count_in",)) as steps:
        with pytest.raises(EngineError) as caught:
            rows_of(steps)
        assert "at step" not in caught.value.message


def test_a_reference_that_gives_nan_is_none(tmp_path):
    sample = {"x": np.float32([-1, 1]), "h0": np.zeros(2, np.float32)}
    with measuring(tmp_path, BROKEN, target=PLAIN, sample=sample) as steps, pytest.raises(DataError, match="step 0"):
        rows_of(steps)


def reads(steps, feed, **outputs):
    """Return how outputs are judged on a feed."""
    right = steps.reference(feed)
    given = {name: outputs.get(name, array) for name, array in right.items()}
    found = steps.evaluated(lambda healthy: healthy.on(feed))
    return {(v.value, v.part): v for v in steps.judged(right, given, found, steps.parts(feed, right), feed)}


CACHE = [
    helper.make_node("Concat", ["past", "new"], ["present"], name="cache", axis=0),
    helper.make_node("ReduceSum", ["present"], ["sum"], name="sum"),
]
SHAPES = {"past": ("P", 2), "new": ("S", 2)}


def test_new_and_old_rows_of_a_cache_are_judged_apart(tmp_path):
    model = of_nodes(CACHE, inputs=SHAPES, outputs={"sum": (1, 1), "present": ("T", 2)})
    feed = {"past": np.ones((100, 2), np.float32), "new": np.full((1, 2), 1e-3, np.float32)}
    wrong = np.concatenate([feed["past"], feed["new"] * np.float32(1.01)])
    with measuring(tmp_path, model, target=PLAIN, carry=("present=past",)) as steps:
        found = reads(steps, feed, present=wrong)
        assert list(found) == [("present", "new rows"), ("present", "old rows"), ("sum", "")]  # as nodes come
        assert {part: value.within for part, value in found.items()} == {
            ("present", "new rows"): False, ("present", "old rows"): True, ("sum", ""): True,
        }  # fmt: skip
        new = found["present", "new rows"]
        assert new.error == pytest.approx(0.01, rel=1e-4)
        assert new.ratio > 1


def test_whole_numbers_may_differ_where_they_differ_among_healthy_engines(tmp_path):
    text = """g (float[8] x, float[8] h0) => (float[8] hn, int64[8] rank) {
        [add] hn = Add(x, h0) [scale] t = Mul(hn, hn) [rank] rank = Cast<to=7>(t) }"""
    with measuring(tmp_path, text) as steps:
        near = {"x": np.full(8, 1.7320509, np.float32), "h0": np.zeros(8, np.float32)}  # squares of 3, or just below
        clear = {"x": np.full(8, 1.5, np.float32), "h0": np.zeros(8, np.float32)}
        other = np.array([2] * 8)
        allowed = reads(steps, near, rank=np.array([3] * 8))["rank", ""]
        assert allowed.within
        refused = reads(steps, clear, rank=other + 5)["rank", ""]
        assert (refused.within, refused.error) == (False, 1.0)


def test_without_healthy_evaluations_the_noise_floor_judges_a_step_and_nothing_judges_drift(tmp_path):
    with measuring(tmp_path, CELL, target=PLAIN, steps=2) as steps:

        def refuse(_):
            raise EngineError("no such operator", slug="run-failed", cure="")

        assert steps.evaluated(refuse) is None
        assert (len(steps.notes), "no such operator" in steps.notes[0]) == (1, True)
        assert steps.evaluated(lambda healthy: healthy) is None
        feed = {"x": np.ones(4, np.float32), "h0": np.zeros(4, np.float32)}
        right = steps.reference(feed)
        (same,) = steps.judged(right, right, None, {}, feed)
        (off,) = steps.judged(right, {"hn": right["hn"] * 2}, None, {}, feed)
        assert (same.within, same.error, off.within, off.error) == (True, 0.0, False, pytest.approx(1.0))
        rows = rows_of(steps)
        assert [row.drifted for row in rows] == [(), ()]
        assert len(steps.notes) == 1


def test_the_next_token_is_compared_where_there_are_scores(tmp_path):
    with measuring(tmp_path, CELL) as steps:
        assert steps.next_token({}, {}) is None
    text = """g (float[1, 4] x, float[1, 4] h0) => (float[1, 4] hn, float[1, 4] logits) {
        [add] hn = Add(x, h0) [neg] logits = Neg(hn) }"""
    with measuring(tmp_path, text) as steps:
        right, other = ({"logits": np.float32([row])} for row in ([0, 1, 2, 3], [9, 1, 2, 3]))
        token = steps.next_token(right, other)
        assert (token.reference, token.target) == ((3,), (0,))
        assert steps.next_token({"hn": right["logits"]}, other) is None
        sample_rows = rows_of(steps)
        assert all(row.tokens is not None and row.tokens[0] == row.tokens[1] for row in sample_rows)
        assert all(row.divergence >= 0 and row.margin > 1 for row in sample_rows)


FAULTY = """
import numpy as np
import onnxruntime as ort

class Engine:
    def compile(self, model, options):
        return Session(str(model), options["kind"])

class Session:
    def __init__(self, path, kind):
        self.inner, self.kind, self.count = ort.InferenceSession(path), kind, 0

    def run(self, feed):
        self.count += 1
        found = dict(zip(["hn"], self.inner.run(None, feed)))
        if self.count == 2 and self.kind == "wrong":
            return {"hn": found["hn"] * np.float32(1.5)}
        if self.count == 2 and self.kind == "shape":
            return {"hn": found["hn"][:2]}
        if self.count == 2 and self.kind == "fails":
            raise RuntimeError("out of order")
        return found
"""


@pytest.mark.lengthy
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wrong", "shape", "fails"])
def test_a_session_that_is_wrong_once_is_wrong_at_that_step_and_not_in_a_new_one(tmp_path, kind):
    file = engine_file(FAULTY)
    target = EngineSpec.parse(f"script:{file}:Engine,kind={kind}")
    with measuring(tmp_path, CELL, target=target, steps=3) as steps:
        rows = rows_of(steps)
        assert [bool(row.outside) for row in rows] == [False, True, False]
        assert [bool(row.failure) for row in rows] == [False, kind != "wrong", False]
        assert list(steps.open_feeds) == [1]
        assert steps.again(steps.open_feeds[1]) is False
        if kind == "wrong":
            assert rows[1].values[0].error == pytest.approx(0.5)
            assert not rows[1].drifted[0].within
        else:
            assert rows[1].values[0].error == np.inf
            assert rows[1].drifted == ()


@pytest.mark.slow
def test_a_target_that_is_always_wrong_is_so_again(tmp_path):
    file = engine_file(FAULTY.replace("self.count == 2", "True"))
    target = EngineSpec.parse(f"script:{file}:Engine,kind=wrong")
    with measuring(tmp_path, CELL, target=target, steps=1, drift=False) as steps:
        (row,) = rows_of(steps)
        assert steps.again(steps.open_feeds[row.step]) is True
