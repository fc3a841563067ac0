"""A model whose weights stay in their files computes what the same model computes from a file of its own."""

import numpy as np
import onnx
import pytest

import models
from tensortriage.engines.onnxruntime.in_place import EmbeddedOnnxRuntime
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import ModelError, UsageError
from tensortriage.model.cutting.extract import extract
from tensortriage.model.model import ExternalData, ExternalLayout, Model
from tensortriage.model.model_message import in_place
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.observation.runner import Runner
from tensortriage.runs.workspace import Workspace

PLAIN = EngineSpec("onnxruntime", {"optimization": "none"})
X = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)
NEAR = {"rtol": 1e-5, "atol": 1e-4}  # 96 products of size ~1 in float32, added in another order


def saved(folder, layout):
    """Two MatMuls with weights of 24 kB each, saved in some layout, and what they compute in float64."""
    rng = np.random.default_rng(2)
    first, second = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, 96), (96, 64)))
    message = models.proto("""
        g (float[N, 64] x) => (float[N, 64] y) { [first] a = MatMul(x, v) [second] y = MatMul(a, w) }""")
    message.graph.initializer.extend(
        [onnx.numpy_helper.from_array(first, "v"), onnx.numpy_helper.from_array(second, "w")]
    )
    return models.of_message(message).save(folder / "m.onnx", external_data=layout), X.astype(
        np.float64
    ) @ first @ second


LAYOUTS = [ExternalData.ALWAYS, ExternalLayout(location="deeper/w.bin"), ExternalLayout(one_file=False)]


@pytest.mark.parametrize("layout", [*LAYOUTS, ExternalData.AUTO], ids=str)
def test_weights_are_used_where_they_are(tmp_path, layout, monkeypatch):
    if layout is ExternalData.AUTO:  # weights in a small model file are read with it
        monkeypatch.setattr("tensortriage.model.io.parse.LARGE_FILE_BYTES", 1024)
    path, wanted = saved(tmp_path, layout)
    model = Model.load(path)
    message = in_place(model)
    assert message is not None
    assert len(message.message) < 1024
    with Workspace(tmp_path / "work", in_place=True) as workspace:
        for _ in range(2):
            with Runner(PLAIN, model, workspace=workspace) as runner:
                np.testing.assert_allclose(runner.run({"x": X})["y"], wanted, **NEAR)
                assert runner.plan() is None
        assert list(workspace.folder.iterdir()) == []


def test_a_cut_needs_no_file(tmp_path):
    model = Model.load(saved(tmp_path, ExternalData.ALWAYS)[0])
    cut = extract(model, ["second"], specs=value_specs(model))
    a = np.ones((2, 96), np.float32)
    with Workspace(tmp_path / "work", in_place=True) as workspace, Runner(PLAIN, cut, workspace=workspace) as runner:
        np.testing.assert_allclose(runner.run({"a": a})["y"], a.astype(np.float64) @ model.graph.weight("w"), **NEAR)
        assert list(workspace.folder.iterdir()) == []


def test_weights_in_several_directories_are_written_to_a_file(tmp_path):
    path, wanted = saved(tmp_path / "one", ExternalData.ALWAYS)
    model = Model.load(path)
    other = Model.load(saved(tmp_path / "two", ExternalData.ALWAYS)[0])
    model.ir.graph.initializers["w"].const_value = other.ir.graph.initializers["w"].const_value
    edited = Model.from_ir(model.ir)
    assert in_place(edited) is None
    with Workspace(tmp_path / "work", in_place=True) as workspace, Runner(PLAIN, edited, workspace=workspace) as runner:
        np.testing.assert_allclose(runner.run({"x": X})["y"], wanted, **NEAR)
        assert list(workspace.folder.iterdir()) != []


def test_a_file_that_changed_is_an_error(tmp_path):
    path, _ = saved(tmp_path, ExternalData.ALWAYS)
    model = Model.load(path)
    (tmp_path / "m.onnx.data").write_bytes(b"0" * 100)
    with pytest.raises(ModelError) as caught:
        in_place(model)
    assert caught.value.slug == "external-data-changed"


def test_a_precision_that_rewrites_the_model_is_refused(tmp_path):
    message = in_place(Model.load(saved(tmp_path, ExternalData.ALWAYS)[0]))
    with pytest.raises(UsageError) as caught:
        EmbeddedOnnxRuntime().compile_in_place(message, {"precision": "fp16"})
    assert caught.value.slug == "engine-option-value"
