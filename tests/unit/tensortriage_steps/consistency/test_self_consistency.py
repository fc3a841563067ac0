"""A batch that nobody gave: the fault shows from the fifth row on, the data have two."""

import types

import numpy as np
import pytest

from diagnosing import ask, step
from engine_scripts import engine_file
from tensortriage.runs.observation.experiment import Measurement
from tensortriage_steps.consistency import self_consistency
from tensortriage_testing import feed_for, mlp

NODE = "/layer.0/Gemm"
QUESTION = "do equal inputs give equal results?"


@pytest.fixture(scope="module")
def network():
    model = mlp(width=12, layers=1, features=6, batch="batch")
    return model, feed_for(model, batch=2)


@pytest.mark.lengthy
def test_a_kernel_for_larger_batches_is_found_on_data_of_two_rows(network, tmp_path):
    model, feed = network
    verdict, _ = ask(tmp_path, model, feed, f"fault:kind=rows-above,node={NODE}")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", NODE)
    assert "rows stay equal" in step(verdict, QUESTION).answer


def test_a_healthy_engine_is_asked_in_twentythree_runs_and_remembered(network, tmp_path):
    """Seven batches, the feed again, misaligned, strided and thrice in one buffer, and five times in two streams."""
    model, feed = network
    first, _ = ask(tmp_path, model, feed, "onnxruntime")
    assert first.verdict == "match"
    found = step(first, QUESTION)
    assert found.answer.startswith("yes (13 tests: same row twice, other neighbours, ")
    assert found.checks >= 7 + 1 + 1 + 1 + 3 + 2 * 5 + 1  # more where two threads of a busy machine do not meet
    again, _ = ask(tmp_path, model, feed, "onnxruntime")
    assert step(again, QUESTION).checks == 0


def test_an_engine_that_was_slow_to_build_is_so_when_the_case_is_resumed(network, tmp_path, monkeypatch):
    """The second command builds nothing, so that its own builds take no time."""
    monkeypatch.setattr(self_consistency, "SLOW_BUILD_SECONDS", 0.0)
    model, feed = network
    first, again = (step(ask(tmp_path, model, feed, "onnxruntime")[0], QUESTION) for _ in range(2))
    assert (again.answer, again.checks) == (first.answer, 0)


def test_of_a_model_of_one_row_the_ways_to_run_it_are_asked(tmp_path):
    model = mlp(width=8, layers=1, features=6, batch=1)
    verdict, _ = ask(tmp_path, model, feed_for(model), "onnxruntime")
    assert step(verdict, QUESTION).answer.startswith("yes (6 tests: ")


def test_tests_that_would_take_long_are_left_to_the_command_that_asks_them_all(tmp_path, monkeypatch):
    monkeypatch.setattr(self_consistency, "MOST_SECONDS", -1.0)
    model = mlp(width=8, layers=1, features=6, batch=1)
    verdict, _ = ask(tmp_path, model, feed_for(model), "onnxruntime")
    assert verdict.verdict == "match"
    assert "6 more tests: the model takes long to evaluate (triage check consistency" in step(verdict, QUESTION).answer


CONTRADICTING = "from tensortriage_testing import ContradictingEngine as Engine\n"


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("odd-batch", "local-fault"),
        ("threads=3", "local-fault"),
        ("misaligned", "nondeterministic-run"),
        ("other-stream", "nondeterministic-run"),
        ("shape-again", "nondeterministic-run"),
    ],
)
def test_a_fault_that_the_given_batch_does_not_show_is_named(network, tmp_path, condition, verdict):
    model, feed = network
    file = engine_file(CONTRADICTING)
    target = f"script:{file}:Engine,kind=scale,node={NODE},when={condition}"
    found, _ = ask(tmp_path, model, feed, target)
    assert (found.verdict, found.culprits[0].node) == (verdict, NODE)


def test_a_match_says_which_batches_were_not_asked(network, tmp_path, monkeypatch):
    monkeypatch.setattr(self_consistency, "SLOW_BUILD_SECONDS", 0.0)
    model, feed = network
    verdict, _ = ask(tmp_path, model, feed, "onnxruntime")
    assert verdict.verdict == "match"
    assert "skipped: batches of other sizes than 2 (a build takes long; triage check consistency checks it)" in (
        verdict.summary
    )


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
    monkeypatch.setattr(self_consistency, "builds_vary", lambda inv: vary)
    assert self_consistency._would_be_replaced(investigation(builds)) is replaced
