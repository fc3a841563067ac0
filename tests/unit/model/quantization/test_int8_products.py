import numpy as np
import onnx
import pytest
from onnxruntime.quantization import quantize_dynamic

import models
import running
from machine import exact_int8
from tensortriage.model.model import Model
from tensortriage.model.quantization.int8_products import int8_products, unsigned_weights

PAIRS = """
    g (float[2, 2] x) => (float[2, 2] y)
    <float s = {0.1}, uint8 o = {128}, float t = {0.5}, int8[2, 2] w = {127, -128, 3, 4}, int8 u = {7}> {
        q = QuantizeLinear(x, s, o)  a = DequantizeLinear(q, s, o)
        [weight] b = DequantizeLinear(w, t, u)
        [mm] y = MatMul(a, b)
    }"""
NO_ZERO = PAIRS.replace("(w, t, u)", "(w, t)").replace(", int8 u = {7}", "")
QUANTIZED_AS_READ = PAIRS.replace("int8[2, 2] w = {127, -128, 3, 4}", "float[2, 2] v = {60, -64, -1, 2}").replace(
    "[weight]", "[first] w = QuantizeLinear(v, t, u) [weight]"
)
PER_CHANNEL = """
    g (float[1, 2, 2, 2] x) => (float[1, 2, 1, 1] y)
    <float s = {0.1}, uint8 o = {128}, float[2] t = {0.5, 0.25},
     int8[2, 2, 2, 2] w = {1, -128, 127, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}> {
        q = QuantizeLinear(x, s, o)  a = DequantizeLinear(q, s, o)
        [weight] b = DequantizeLinear <axis: int = 0> (w, t)
        [conv] y = Conv(a, b)
    }"""
LINEAR = """
    g (uint8[2, 2] x) => (uint8[2, 2] y)
    <float s = {0.1}, uint8 o = {128}, float t = {0.5}, int8[2, 2] w = {127, -128, 3, 4}, int8 u = {0}, float r = {9}> {
        [mm] y = QLinearMatMul(x, s, o, w, t, u, r, o)
    }"""
INTEGER = """
    g (uint8[2, 2] x) => (int32[2, 2] y) <int8[2, 2] w = {127, -128, 3, 4}> { [mm] y = MatMulInteger(x, w) }"""


@pytest.mark.parametrize("text", [PAIRS, NO_ZERO, QUANTIZED_AS_READ, PER_CHANNEL, LINEAR, INTEGER])
def test_weights_in_uint8_are_the_same_numbers(text):
    model = models.parse(text)
    (product,) = int8_products(model.graph)
    assert product.node.name in ("mm", "conv")
    other = unsigned_weights(model)
    assert not int8_products(other.graph)
    kinds = {other.graph.weight(name).dtype for name in other.graph.constants}
    assert np.dtype(np.int8) not in kinds
    rng = np.random.default_rng(0)
    shape = [2, 2] if product.node.name != "conv" else [1, 2, 2, 2]
    numbers = rng.integers(0, 256, shape).astype(np.uint8)
    feed = {"x": numbers if "uint8[2, 2] x" in text else (numbers * 0.1 - 12.8).astype(np.float32)}
    np.testing.assert_array_equal(running.run(other, feed)["y"], running.run(model, feed)["y"])


@pytest.mark.parametrize(
    "text",
    [
        "g (float[2] x) => (float[2] y) { y = Neg(x) }",
        PAIRS.replace("int8[2, 2] w = {127, -128, 3, 4}, int8 u", "uint8[2, 2] w = {127, 0, 3, 4}, uint8 u"),
    ],
)
def test_a_file_without_int8_weights_stays(text):
    assert unsigned_weights(models.parse(text)) is None


def test_a_weight_that_others_read_as_well_stays_for_them():
    text = PAIRS.replace("y)\n", "y, int8[2, 2] z)\n").replace("[mm]", "z = Identity(w) [mm]")
    other = unsigned_weights(models.parse(text))
    assert running.run(other, {"x": np.zeros((2, 2), np.float32)})["z"].tolist() == [[127, -128], [3, 4]]


@exact_int8
def test_both_products_of_an_lstm_in_uint8(tmp_path):
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (float[3,1,2] x) => (float[3,1,1,4] y) '
        "{ y, h, c = LSTM<hidden_size=4>(x, w, r) }"
    )
    made = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    for name, shape in {"w": (1, 16, 2), "r": (1, 16, 4)}.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(rng.random(shape, np.float32) - 0.5, name))
    onnx.save(made, tmp_path / "model.onnx")
    quantize_dynamic(tmp_path / "model.onnx", tmp_path / "file.onnx")
    model = Model.load(tmp_path / "file.onnx")
    assert [each.at for each in int8_products(model.graph)] == [(1, 9), (2, 11)]
    other = unsigned_weights(model)
    assert not int8_products(other.graph)
    feed = {"x": rng.standard_normal((3, 1, 2)).astype(np.float32)}
    np.testing.assert_array_equal(running.run(other, feed)["y"], running.run(model, feed)["y"])
