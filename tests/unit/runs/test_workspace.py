"""Which file an engine is given for a model."""

import models
from tensortriage.model.model import Model
from tensortriage.runs import workspace
from tensortriage.runs.workspace import Workspace


def test_a_file_that_is_too_large_for_engines_is_theirs_in_a_copy(tmp_path, monkeypatch):
    models.write(tmp_path / "m.onnx", "g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model = Model.load(tmp_path / "m.onnx")
    with Workspace() as own:
        assert own.file(model) == tmp_path / "m.onnx"
        monkeypatch.setattr(workspace, "MOST_FILE_BYTES", 10)
        copy = own.file(model)
        assert copy.parent == own.folder
        assert [node.op_type for node in Model.load(copy).graph.nodes] == ["Relu"]
