"""What an edit may not overwrite: the model it reads, and the files that hold its weights."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tensortriage.errors import UsageError
from tensortriage.model.model import ExternalData, ExternalLayout
from tensortriage.workflows.edits.edit_pipeline import model_to_edit
from tensortriage.workflows.edits.requests import Source, Target


def save(path: Path, location: str) -> None:
    """Write a model whose weight is in another file; that file too when it can be."""
    weight = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 64]) for name in "xy"]
    if "\0" not in location:
        (path.parent / location).parent.mkdir(exist_ok=True)
        (path.parent / location).write_bytes(weight.raw_data)
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:], [weight])
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize(
    ("location", "output", "layout"),
    [
        ("w.bin", "m.onnx", ExternalData.LEAVE),
        ("w.bin", "w.bin", ExternalData.LEAVE),
        ("w.bin", "new.onnx", ExternalLayout("w.bin")),
        ("new.onnx.data", "new.onnx", ExternalData.LEAVE),
        ("parts/w.bin", "new.onnx", ExternalLayout("parts", one_file=False)),
    ],
)
def test_no_file_of_the_model_is_overwritten(tmp_path, location, output, layout, ignored):
    save(tmp_path / "m.onnx", location)
    source = Source(tmp_path / "m.onnx", ignore_external_data=ignored)
    with pytest.raises(UsageError) as caught:
        model_to_edit(source, Target(tmp_path / output, layout))
    assert caught.value.slug == "output-is-input"


@pytest.mark.parametrize("location", ["w.bin", "a\0b"])
def test_other_files_may_be(tmp_path, location):
    save(tmp_path / "m.onnx", location)
    (tmp_path / "old.onnx").write_bytes(b"")
    ignored = location != "w.bin"
    model_to_edit(Source(tmp_path / "m.onnx", ignore_external_data=ignored), Target(tmp_path / "old.onnx"))
