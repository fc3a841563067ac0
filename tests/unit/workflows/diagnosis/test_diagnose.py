"""What a diagnosis checks before it asks anything."""

from pathlib import Path

import pytest

from tensortriage.errors import ModelError, UsageError
from tensortriage.workflows.diagnosis.diagnose import DiagnoseRequest, diagnose


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
