"""A verdict that two files differ shows where they part: outputs and tensors, with no engine in the figures."""

import numpy as np
import pytest
from onnx import numpy_helper

import models
from diagnosing import ask

TEXT = """<ir_version: 8, opset_import: ["": 17]>
  g (float[4,8] x) => (float[4,8] y) <float[8] w = {1,2,3,4,5,6,7,8}, float[8] v = {1,2,1,2,1,2,1,2}> {
    a = Mul(x, w)
    b = Tanh(a)
    c = Mul(b, v)
    y = Relu(c)
  }"""
FEED = {"x": np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)}


def another(folder, name, change):
    model = models.proto(TEXT)
    for tensor in model.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), name))
    return models.write(folder / "other.onnx", model)


@pytest.mark.parametrize("target", ["onnxruntime", "emulate:precision=fp16"])
def test_tensors_are_right_up_to_the_change_and_wrong_from_there_on(tmp_path, target):
    other = another(tmp_path, "v", lambda array: (array * 1.1).astype(np.float32))
    verdict, report = ask(tmp_path, TEXT, FEED, target, target_model=other)
    assert verdict.verdict == "model-changed"
    (output,) = report.outputs.rows
    assert not output.within
    assert output.relative_rms_error == pytest.approx(0.1, rel=1e-3)
    errors = [row.in_context_error for row in report.layers.rows]
    assert errors[:2] == [0, 0]
    assert errors[2:] == [pytest.approx(0.1, rel=1e-3)] * 2
    assert all(row.floor for row in report.layers.rows)
    again, _ = ask(tmp_path, TEXT, FEED, target, target_model=other)
    assert (again.cost.builds, again.cost.checks) == (0, 0)
