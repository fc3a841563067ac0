import onnx

from models import chain
from tensortriage.model.model import Model
from tensortriage.model.scratch_files import STAMP, is_transient, save_transient


def test_a_model_for_one_use_is_marked_in_the_file_alone(tmp_path):
    model = chain(3)
    model.ir.metadata_props["author"] = "someone"
    for name in ("a.onnx", "b.onnx"):
        save_transient(model, tmp_path / name)
        assert is_transient(tmp_path / name)
    assert STAMP not in model.ir.metadata_props
    written = {entry.key: entry.value for entry in onnx.load(tmp_path / "a.onnx").metadata_props}
    assert written["author"] == "someone"
    save_transient(Model.load(tmp_path / "a.onnx"), tmp_path / "c.onnx")
    marks = [entry for entry in onnx.load(tmp_path / "c.onnx").metadata_props if entry.key == STAMP]
    assert len(marks) == 1
    model.save(tmp_path / "kept.onnx")
    assert not is_transient(tmp_path / "kept.onnx")
