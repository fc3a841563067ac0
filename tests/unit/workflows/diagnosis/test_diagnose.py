"""What a diagnosis checks before it asks anything."""

from pathlib import Path

import pytest

from tensortriage.demo import demo_inputs, demo_model
from tensortriage.diagnose.state.record import Silent
from tensortriage.errors import ModelError, UsageError
from tensortriage.report.document import Report
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.serial import to_json
from tensortriage.workflows.diagnosis.diagnose import diagnose, diagnosed
from tensortriage.workflows.requests import DiagnoseRequest


@pytest.mark.parametrize(
    ("target", "error", "slug"),
    [("nosuch", UsageError, "engine-unknown"), ("onnxruntime", ModelError, "model-unreadable")],
)
def test_an_engine_that_is_not_there_is_told_of_before_a_model_that_is_none(tmp_path: Path, target, error, slug):
    """The model is read while the engine is asked."""
    (tmp_path / "model.onnx").write_bytes(b"\xff" * 9)
    request = DiagnoseRequest(model=tmp_path / "model.onnx", target=target, case=tmp_path / "case")
    with pytest.raises(error) as told:
        diagnose(request)
    assert told.value.slug == slug
    assert not request.case.exists()


@pytest.mark.lengthy
@pytest.mark.parametrize("target", ["onnxruntime", "emulate:precision=fp16"])
def test_what_is_returned_is_what_the_case_holds(tmp_path: Path, target):
    feeding = FeedRequest(paths=(str(demo_inputs()),))
    request = DiagnoseRequest(model=demo_model(), target=target, feeding=feeding, case=tmp_path / "case", repro=False)
    found = diagnosed(request, listener=Silent())
    assert found.verdict.verdict == ("match" if target == "onnxruntime" else "range-overflow")
    assert to_json(found) == to_json(Report.load(request.case))
    assert found.verdict.verdict in (request.case / "report.html").read_text(encoding="utf-8")
