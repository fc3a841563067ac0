"""Products by weights of 4 bits: what is written into the model is what ONNX Runtime's kernel computes."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

from four_bits import product
from tensortriage.model.model import Model
from tensortriage.model.quantization.int8_operands import int8_operands


def ran(model, x, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def test_it_computes_what_onnx_runtime_fuses(tmp_path):
    model, x = product(), np.random.default_rng(4).standard_normal((5, 64)).astype(np.float32)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    levels = onnxruntime.GraphOptimizationLevel
    right, fused = (
        ran(str(tmp_path / "m.onnx"), x, level) for level in (levels.ORT_DISABLE_ALL, levels.ORT_ENABLE_ALL)
    )
    int8_operands(Model.load(tmp_path / "m.onnx")).save(tmp_path / "int8.onnx")
    found = ran(str(tmp_path / "int8.onnx"), x, levels.ORT_DISABLE_ALL)
    off = np.abs(fused - right).max()
    if off < 1e-5:
        pytest.skip("this processor has no kernel in int8")
    assert np.abs(found - fused).max() < off / 1000


@pytest.mark.parametrize("form", [{"bits": TensorProto.UINT8}, {"axis": 1, "columns": 16}])
def test_other_weights_stay(tmp_path, form):
    (tmp_path / "m.onnx").write_bytes(product(**form).SerializeToString())
    assert int8_operands(Model.load(tmp_path / "m.onnx")) is None
