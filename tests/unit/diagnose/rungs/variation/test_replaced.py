"""A session that builds for every shape: what it ran first may be another engine than what runs now."""

import types

import numpy as np
import pytest

from tensortriage.diagnose.rungs.premises import own_rows
from tensortriage.diagnose.rungs.variation import repeated
from tensortriage.runs.observation.experiment import Measurement
from tensortriage.values.store import MemoryStore


def investigation(builds):
    answer = Measurement(builds_made=builds)
    question = types.SimpleNamespace(target="target", feeds=["feed"])
    return types.SimpleNamespace(question=question, model="model", lab=types.SimpleNamespace(answer=lambda _: answer))


@pytest.mark.parametrize(
    ("builds", "vary", "replaced"),
    [(1, True, True), (1, None, True), (1, False, False), (0, True, False)],
)
def test_other_batch_sizes_are_not_fed_where_that_replaces_the_deployed_engine(monkeypatch, builds, vary, replaced):
    """With a range of shapes, or fixed ones, there is one build whatever is fed."""
    monkeypatch.setattr(own_rows, "builds_vary", lambda inv: vary)
    assert own_rows._would_be_replaced(investigation(builds)) is replaced


@pytest.mark.parametrize(("builds", "vary", "moved"), [(2, True, 0.0), (1, True, 0.5), (2, False, 0.5)])
def test_what_an_earlier_build_ran_is_not_compared_as_a_run_of_this_one(monkeypatch, builds, vary, moved):
    """Seen on TensorRT in fp16 without a range: another batch size was fed, and the next run differed by 4.7e-5."""
    monkeypatch.setattr(repeated, "builds_vary", lambda inv: vary)
    monkeypatch.setattr(repeated, "from_first", lambda *_: 0.5)
    first = Measurement(MemoryStore({"y": np.zeros(1)}), builds_made=builds)
    worst = types.SimpleNamespace(metrics={"y": None})
    assert repeated.since_deployed(investigation(builds), worst, first) == {"y": moved}
