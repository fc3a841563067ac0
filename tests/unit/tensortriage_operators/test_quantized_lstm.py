"""The coarser body of DynamicQuantizeLSTM is ONNX Runtime's kernel: its state is rounded before each step.

With one row in a batch every thread has the range of all rows, so that both are equal but for roundings of float32.
"""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import quantize_dynamic

import running
from tensortriage.compare.quantization.int16_sums import own_range, saturated_product
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.replace_nodes import with_bodies, with_runtime_bodies
from tensortriage.model.quantization.int8_products import unsigned_weights
from tensortriage.model.quantization.int16_products import int16_products

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


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def saturating(model, x):
    """Return the results of an LSTM in one direction whose products saturate in int16, by ONNX's equations."""
    graph, (node,) = model.graph, model.graph.nodes
    w, r, b, ws, rs = (graph.weight(node.inputs[index])[0] for index in (1, 2, 3, 8, 10))
    h = c = np.zeros((1, HIDDEN))
    shown = []

    def product(rows, zero, step, weight, scale):
        return (saturated_product(rows, weight) - zero * weight.astype(float).sum(axis=0)) * step * scale

    numbers, zero = own_range(x.reshape(STEPS, SIZE))
    step_of = lambda data: (max(0.0, float(data.max())) - min(0.0, float(data.min()))) / 255 or 1.0  # noqa: E731
    given = product(numbers, zero, step_of(x), w, ws)
    for row in given:
        state, point = own_range(h.astype(np.float32))
        gates = row + product(state, point, step_of(h), r, rs) + b[: 4 * HIDDEN] + b[4 * HIDDEN :]
        i, o, f, g = np.split(gates, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        shown.append(h)
    return np.stack(shown)[:, None]


def test_products_of_input_and_state_saturate_in_int16(tmp_path):
    """Expected by the arithmetic of the kernels and the equations of ONNX's LSTM, in numpy."""
    model, feed = quantized(tmp_path, "forward", states=False)
    feed["x"] = np.abs(feed["x"]) + 1.0  # numbers are large where the zero point is 0
    found, exact = (running.run(each, feed)["y"] for each in (int16_products(model), with_bodies(model)))
    right = saturating(model, feed["x"])
    size = np.sqrt(np.mean(right**2))
    assert np.abs(found - right).max() < 1e-5 * size
    assert np.abs(found - exact).max() > 1e-2 * size


def test_weights_in_uint8_saturate_nowhere(tmp_path):
    model, _ = quantized(tmp_path, "bidirectional", states=True)
    assert int16_products(model) is not None
    assert int16_products(unsigned_weights(model)) is None
