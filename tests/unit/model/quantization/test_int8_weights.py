"""Float weights between quantizers in int8: ONNX Runtime, which puts them so as it builds, is what they are held to."""

import numpy as np
import pytest

import models
import running
from machine import exact_int8
from tensortriage.model.quantization.int8_weights import float_weights, weights_in_int8

LAYERS = {
    "ConvTranspose": ("float[1,2,3,3] x", "float[1,3,6,6] y", "2,3,2,2", "<kernel_shape=[2,2], strides=[2,2]>"),
    "Conv": ("float[1,2,5,5] x", "float[1,4,3,3] y", "4,2,3,3", "<kernel_shape=[3,3]>"),
    "Gemm": ("float[4,6] x", "float[4,5] y", "6,5", ""),
}
NET = """g (@x) => (@y) <float s = {0.05}, uint8 o = {128}, float t = {0.01}, uint8 p = {0}, float[@shape] w = {@w}> {
    q = QuantizeLinear(x, s, o)
    d = DequantizeLinear(q, s, o)
    [layer] l = @op@attributes(d, w)
    r = Relu(l)
    e = QuantizeLinear(r, t, p)
    y = DequantizeLinear(e, t, p)
}"""


def between_quantizers(op):
    x, y, shape, attributes = LAYERS[op]
    rng = np.random.default_rng(0)
    sizes = [int(size) for size in shape.split(",")]
    numbers = ", ".join(f"{each:.6f}" for each in rng.normal(0.05, 0.4, sizes).ravel())
    text = NET.replace("@shape", shape).replace("@attributes", attributes).replace("@op", op).replace("@w", numbers)
    feed = rng.standard_normal([int(size) for size in x.partition("[")[2].partition("]")[0].split(",")])
    return models.parse(text.replace("@x", x).replace("@y", y)), {"x": feed.astype(np.float32)}


@exact_int8
@pytest.mark.parametrize("op", LAYERS)
def test_onnx_runtime_computes_the_rewritten_file(op):
    model, feed = between_quantizers(op)
    assert float_weights(model.graph) == ("w",)
    plain, built = (running.run(model, feed, optimization=level)["y"] for level in ("DISABLE_ALL", "ENABLE_ALL"))
    np.testing.assert_array_equal(running.run(weights_in_int8(model), feed)["y"], built)
    assert (plain != built).any()


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("(d, w)", "(x, w)"),  # its data are not quantized
        ("r = Relu(l)", "r = Sigmoid(l)"),  # nothing that a quantizer takes over
        ("e = QuantizeLinear(r, t, p)", "h = Neg(l) k = Add(h, r) e = QuantizeLinear(k, t, p)"),  # read twice
    ],
)
def test_other_weights_stay(was, now, monkeypatch):
    monkeypatch.setattr(f"{__name__}.NET", NET.replace(was, now))
    model, feed = between_quantizers("Gemm")
    assert weights_in_int8(model) is None
    plain, built = (running.run(model, feed, optimization=level)["y"] for level in ("DISABLE_ALL", "ENABLE_ALL"))
    np.testing.assert_allclose(built, plain, atol=1e-6)
