"""What is saved, in every way of keeping weights, is accepted by the real engines and means the same."""

import os

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import pytest

import models
from tensortriage.model.model import ExternalData, Model

pytestmark = pytest.mark.lengthy

X = np.random.default_rng(1).standard_normal((2, 300)).astype(np.float32)


def source(directory):
    """Two MatMuls: the first weight is external and large, the second embedded and small."""
    directory.mkdir()
    rng = np.random.default_rng(2)
    large = rng.standard_normal((300, 200)).astype(np.float32)
    small = rng.standard_normal((200, 3)).astype(np.float32)
    (directory / "w.bin").write_bytes(large.tobytes())
    message = models.proto("""
        g (float[N, 300] x) => (float[N, 3] y) { [first] a = MatMul(x, w)  [second] y = MatMul(a, v) }""")
    message.graph.initializer.append(models.external_tensor("w", onnx.TensorProto.FLOAT, (300, 200), "w.bin"))
    message.graph.initializer.append(onnx.numpy_helper.from_array(small, "v"))
    # NumPy in float64: 300 products of size ~1 in float32 differ from it by some 1e-5.
    return models.write(directory / "m.onnx", message), X.astype(np.float64) @ large @ small


def run_onnxruntime(path):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0]


def run_openvino(path):
    openvino = pytest.importorskip("openvino")
    compiled = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled({"x": X})[0]


def run_onnx(path):
    return onnx.reference.ReferenceEvaluator(onnx.load(path)).run(None, {"x": X})[0]


ENGINES = pytest.mark.parametrize("run", [run_onnxruntime, run_openvino, run_onnx], ids=lambda run: run.__name__)


@ENGINES
@pytest.mark.parametrize("mode", ExternalData, ids=lambda mode: mode.value)
def test_engines_load_what_is_saved(tmp_path, mode, run):
    path, wanted = source(tmp_path / "user")
    saved = Model.load(path).save(tmp_path / "case/it/m.onnx", external_data=mode)
    np.testing.assert_allclose(run(saved), wanted, rtol=1e-4, atol=1e-3)


@ENGINES
def test_the_users_model_still_loads_while_the_copies_exist(tmp_path, run):
    path, wanted = source(tmp_path / "user")
    Model.load(path).save(tmp_path / "case/m.onnx", external_data=ExternalData.KEEP)
    np.testing.assert_allclose(run(path), wanted, rtol=1e-4, atol=1e-3)
    assert sorted(os.listdir(tmp_path / "user")) == ["m.onnx", "w.bin"]
    assert (tmp_path / "user/w.bin").stat().st_nlink == 1


@ENGINES
def test_a_model_saved_over_itself(tmp_path, run):
    path, wanted = source(tmp_path / "user")
    model = Model.load(path)
    for mode in (ExternalData.ALWAYS, ExternalData.ALWAYS, ExternalData.AUTO):
        model.save(path, external_data=mode)
        np.testing.assert_allclose(run(path), wanted, rtol=1e-4, atol=1e-3)
        model = Model.load(path)
