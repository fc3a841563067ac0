"""Files to be written that cannot or must not be."""

import pytest

from tensortriage.errors import UsageError
from tensortriage.values.output_files import check_output


def test_a_directory_and_the_model_itself_are_refused_whatever_they_are_called(tmp_path):
    model = tmp_path / "model.onnx"
    model.write_bytes(b"")
    (tmp_path / "link.onnx").symlink_to(model)
    for path, slug in [(tmp_path, "output-is-directory"), (model, "output-is-input")]:
        with pytest.raises(UsageError) as caught:
            check_output(path, None, model)
        assert caught.value.slug == slug
    with pytest.raises(UsageError):
        check_output(tmp_path / "link.onnx", model)


def test_other_files_may_be_there_already(tmp_path):
    model, old = tmp_path / "model.onnx", tmp_path / "old.onnx"
    model.write_bytes(b"")
    old.write_bytes(b"")
    for path in (None, old, tmp_path / "new.onnx"):
        check_output(path, model, tmp_path / "missing.onnx")
