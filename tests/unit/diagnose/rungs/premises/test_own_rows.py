"""A batch that nobody gave: the fault shows from the fifth row on, the data have two."""

import types

import numpy as np
import pytest

from diagnosing import ask, step
from tensortriage.diagnose.rungs.premises import own_rows
from tensortriage.runs.observation.experiment import Measurement
from tensortriage.testing import feed_for, mlp

NODE = "/layer.0/Gemm"
QUESTION = "do equal rows get equal results?"


@pytest.fixture(scope="module")
def network():
    model = mlp(width=12, layers=1, features=6, batch="batch")
    return model, feed_for(model, batch=2)


def test_a_kernel_for_larger_batches_is_found_on_data_of_two_rows(network, tmp_path):
    model, feed = network
    verdict, _ = ask(tmp_path, model, feed, f"fault:kind=rows-above,node={NODE}")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", NODE)
    assert "rows stay equal" in step(verdict, QUESTION).answer


def test_a_healthy_engine_is_asked_in_four_runs_and_remembered(network, tmp_path):
    model, feed = network
    first, _ = ask(tmp_path, model, feed, "onnxruntime")
    assert first.verdict == "match"
    found = step(first, QUESTION)
    assert (found.answer, found.checks) == (
        "yes (4 tests: same row twice, other neighbours, rows permuted, batch of one)",
        4,
    )
    again, _ = ask(tmp_path, model, feed, "onnxruntime")
    assert step(again, QUESTION).checks == 0


def test_an_engine_that_was_slow_to_build_is_so_when_the_case_is_resumed(network, tmp_path, monkeypatch):
    """The second command builds nothing, so that its own builds take no time."""
    monkeypatch.setattr(own_rows, "SLOW_BUILD_SECONDS", 0.0)
    model, feed = network
    first, again = (step(ask(tmp_path, model, feed, "onnxruntime")[0], QUESTION) for _ in range(2))
    assert (again.answer, again.checks) == (first.answer, 0)


def test_a_model_of_one_row_has_none_to_compare(tmp_path):
    model = mlp(width=8, layers=1, features=6, batch=1)
    verdict, _ = ask(tmp_path, model, feed_for(model), "onnxruntime")
    assert QUESTION not in {each.question for each in verdict.steps}


def test_a_mean_over_the_batch_is_no_contradiction(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[batch, 6] x) => (float[batch, 6] y) {
      m = ReduceMean <axes = [0], keepdims = 1> (x)
      y = Sub (x, m) }"""
    verdict, _ = ask(tmp_path, text, {"x": np.random.default_rng(0).random((4, 6), np.float32)}, "onnxruntime")
    assert verdict.verdict == "match"
    assert "the model itself mixes rows, in ReduceMean" in step(verdict, QUESTION).answer


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
