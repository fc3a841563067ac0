"""Models, feeds and engines of a diagnosis, before anything is run."""

import numpy as np
import pytest

import models
from tensortriage.errors import ModelError, UsageError
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.subject import case_facts, read_subject
from tensortriage.workflows.requests import DiagnoseRequest

MODEL = "g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }"


@pytest.fixture
def request_of(tmp_path):
    path = models.write(tmp_path / "m.onnx", MODEL)

    def make(**more):
        return DiagnoseRequest(**{"model": path, "target": "onnxruntime", "case": tmp_path / "case", **more})

    return make


def test_all_that_is_read_is_in_it(request_of):
    zeros = FeedRequest.of({"x": np.zeros((1, 3), np.float32)})
    subject = read_subject(request_of(feeding=zeros, sweep={"batch": (1, 2)}, against="float64"))
    assert [feed.name for feed in subject.feeds] == ["given[0]"]
    assert [one.label for one in subject.sweep] == ["batch=1", "batch=2"]
    (odd,) = subject.oddities
    assert "'x' is zero everywhere" in odd
    assert (subject.target_model, subject.cut) == (None, None)
    engines = subject.engines
    assert [str(each) for each in (engines.target, engines.against)] == ["onnxruntime", "float64"]
    assert engines.network is None


def test_an_engine_that_is_unknown_is_told_of_before_a_file(request_of, tmp_path):
    for other, expected in (("nosuch", UsageError), ("onnxruntime", ModelError)):
        with pytest.raises(expected):
            read_subject(request_of(model=tmp_path / "none.onnx", against=other))


def test_facts_name_both_files(request_of, tmp_path):
    other = models.write(tmp_path / "other.onnx", MODEL)
    request = request_of(target_model=other)
    facts = case_facts(request, read_subject(request))
    assert (facts.model.path, facts.target_model.path) == (str(request.model), str(other))
    assert facts.model.sha256 == facts.target_model.sha256
    assert (facts.model.nodes, len(facts.feeds), facts.target) == (1, 1, "onnxruntime")


@pytest.mark.parametrize(
    ("more", "cuttable"), [({}, True), ({"against": "float64"}, False), ({"sweep": {"batch": (2,)}}, False)]
)
def test_a_question_about_the_whole_keeps_the_model_in_one_piece(request_of, more, cuttable):
    assert request_of(**more).can_be_cut is cuttable
