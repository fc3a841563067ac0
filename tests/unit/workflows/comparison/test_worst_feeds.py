"""The worst feeds by a metric: those and no others are saved, and a diagnosis can take them."""

import dataclasses
from pathlib import Path

import numpy as np

from running_cli import triage
from tensortriage.compare.task_metric import SampleScore, compare_scores
from tensortriage.model.model import Model
from tensortriage.report.run_result import CompareResult
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.worst_feeds import save_worst

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
MODEL, DATA = EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits_samples.npz"
REQUEST = CompareRequest(model=MODEL, reference=None, targets=(), feeding=FeedRequest(paths=(str(DATA),)))
NOTHING = CompareResult("r", ("t",), {}, "deployed", {}, (), (), {}, {})


def scored(lost):
    """Return a result in which samples lose as given."""
    samples = [SampleScore(f"{DATA.name}[{n}]", 1.0, 1.0 - lost.get(n, 0.0)) for n in range(14)]
    return dataclasses.replace(NOTHING, task_comparisons=(compare_scores("t", samples),))


def test_the_feeds_that_lose_are_saved_and_no_others(tmp_path):
    path = tmp_path / "worst.npz"
    assert save_worst(REQUEST, scored({3: 0.5, 11: 0.9}), path) == 2
    model = Model.load(MODEL)
    given = [feed.tensors["image"] for feed in feeds(REQUEST.feeding, model)]
    kept = [feed.tensors["image"] for feed in feeds(FeedRequest(paths=(str(path),)), model)]
    assert [next(n for n, one in enumerate(given) if np.array_equal(one, each)) for each in kept] == [3, 11]


def test_nothing_is_written_where_none_loses(tmp_path):
    assert save_worst(REQUEST, scored({}), tmp_path / "worst.npz") == 0
    assert not list(tmp_path.iterdir())


def test_the_option_needs_a_metric(tmp_path):
    done = triage("run", MODEL, "--target", "onnxruntime", "--save-worst", "w.npz", cwd=tmp_path)
    assert done.returncode == 2
    assert "error[option-needs-another]" in done.stderr
