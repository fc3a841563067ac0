"""The coarser body of DynamicQuantizeLSTM is ONNX Runtime's kernel: its state is rounded before each step.

With one row in a batch every thread has the range of all rows, so that both are equal but for roundings of float32.
"""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import quantize_dynamic

import running
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.replace_nodes import with_bodies, with_runtime_bodies

STEPS, SIZE, HIDDEN = 9, 6, 16


def quantized(folder, direction, *, states):
    count = 1 + (direction == "bidirectional")
    ends = f"float[{STEPS},{count},1,{HIDDEN}] y, float[{count},1,{HIDDEN}] h, float[{count},1,{HIDDEN}] c"
    begins = f", float[{count},1,{HIDDEN}] h0, float[{count},1,{HIDDEN}] c0" if states else ""
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[{STEPS},1,{SIZE}] x{begins}) => ({ends}) '
        f'{{ y, h, c = LSTM<hidden_size={HIDDEN}, direction="{direction}">(x, w, r, b{", , h0, c0" * states}) }}'
    )
    rng = np.random.default_rng(0)
    shapes = {"w": (count, 4 * HIDDEN, SIZE), "r": (count, 4 * HIDDEN, HIDDEN), "b": (count, 8 * HIDDEN)}
    for name, shape in shapes.items():
        made.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 2, name))
    onnx.save(made, folder / "model.onnx")
    quantize_dynamic(folder / "model.onnx", folder / "file.onnx")
    model = Model.load(folder / "file.onnx")
    assert [node.op_type for node in model.graph.nodes] == ["DynamicQuantizeLSTM"]
    shapes = {spec.name: spec.shape for spec in model.inputs}
    return model, {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_state_is_rounded_before_each_step(tmp_path, direction, states):
    model, feed = quantized(tmp_path, direction, states=states)
    found, coarse, plain = (running.run(each, feed) for each in (model, with_bodies(model), with_runtime_bodies(model)))
    for name in ("y", "h", "c"):
        size = np.sqrt(np.mean(found[name] ** 2))
        assert np.abs(coarse[name] - found[name]).max() < 1e-5 * size
        assert np.abs(plain[name] - found[name]).max() > 1e-4 * size
