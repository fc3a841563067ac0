"""Bodies of operators that ONNX Runtime has no CPU kernel for, against their formulas or other operators of it."""

import math

import numpy as np
import onnx
import pytest

from runtime_operators import fed, written
from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.engines.onnxruntime import OnnxRuntimeEngine


def own(text, path, opset=17, **feed):
    model = written(text, opset)
    onnx.save(model, path)
    given = {**fed(model), **feed}
    return given, Float64Engine().compile(path, {}).run(given)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def test_sums(tmp_path):
    text = "(float[2,5,8] x, float[8] b) => (float[?] y) { y = com.microsoft.BiasSoftmax <axis = 2> (x, b) }"
    feed, made = own(text, tmp_path / "c.onnx")
    powers = np.exp(feed["x"] + feed["b"])
    close(made["y"], powers / powers.sum(-1, keepdims=True))
    text = "(float[2,5] x, float[5] b, float[2,5] s) => (float[?] y) { y = com.microsoft.BiasDropout(x, b, s) }"
    feed, made = own(text, tmp_path / "d.onnx")
    close(made["y"], feed["x"] + feed["b"] + feed["s"])


def test_products(tmp_path):
    text = "(float[2,5] x, float[5,4] w, float[4] b) => (float[?] y) { y = com.microsoft.GemmFastGelu(x, w, b) }"
    feed, made = own(text, tmp_path / "a.onnx")
    close(made["y"], fast_gelu(feed["x"].astype(float) @ feed["w"] + feed["b"]))
    text = (
        "(float[2,5] x, float[4,5] w) => (float[?] y) { y = com.microsoft.FusedMatMulActivation "
        '<transB = 1, alpha = 0.5, activation = "LeakyRelu", activation_alpha = 0.3> (x, w) }'
    )
    feed, made = own(text, tmp_path / "b.onnx")
    product = 0.5 * feed["x"].astype(float) @ feed["w"].T
    close(made["y"], np.where(product > 0, product, 0.3 * product))


def test_channels_last(tmp_path):
    header = "float[1,6,5,3] x) => (float[?] y)"
    text = f"(float[4,3,3,3] w, float[4] b, {header} {{ y = com.microsoft.NhwcConv <pads = [1, 1, 0, 0]> (x, w, b) }}"
    feed, made = own(text, tmp_path / "a.onnx")
    plain = (
        "(float[1,3,6,5] x, float[4,3,3,3] w, float[4] b) => (float[?] y) { y = Conv <pads = [1, 1, 0, 0]> (x, w, b) }"
    )
    onnx.save(written(plain, 17), tmp_path / "plain.onnx")
    given = {"x": feed["x"].transpose(0, 3, 1, 2), "w": feed["w"].transpose(0, 3, 1, 2), "b": feed["b"]}
    truth = OnnxRuntimeEngine().compile(tmp_path / "plain.onnx", {}).run(given)["y"].transpose(0, 2, 3, 1)
    close(made["y"], truth)
    text = text.replace("NhwcConv <", 'NhwcFusedConv <activation = "Relu", ')
    feed, made = own(text, tmp_path / "b.onnx", w=given["w"])
    close(made["y"], np.maximum(truth, 0))


def test_packed_query_key_and_value(tmp_path):
    random = np.random.default_rng(0)
    parts = random.standard_normal((3, 2, 3, 8)).astype(np.float32)
    attention = "(float[?] y) { y = com.microsoft.MultiHeadAttention <num_heads = 2>"
    plain = f"(float[2,3,8] q, float[2,3,8] k, float[2,3,8] v) => {attention} (q, k, v) }}"
    onnx.save(written(plain, 17), tmp_path / "plain.onnx")
    truth = OnnxRuntimeEngine().compile(tmp_path / "plain.onnx", {}).run(dict(zip("qkv", parts, strict=True)))["y"]
    together = parts.reshape(3, 2, 3, 2, 4).transpose(1, 2, 3, 0, 4)
    text = f"(float[2,3,2,3,4] q) => {attention} (q) }}"
    close(own(text, tmp_path / "a.onnx", q=together.copy())[1]["y"], truth)
    text = f"(float[2,3,8] q, float[2,3,2,2,4] k) => {attention} (q, k) }}"
    close(own(text, tmp_path / "b.onnx", q=parts[0], k=together[..., 1:, :].copy())[1]["y"], truth)


@pytest.mark.parametrize("both", [0, 1])
def test_positions_of_t5(tmp_path, both):
    text = (
        "(float[16,3] t) => (float[?] y) <int64[1] q = {9}, int64[1] k = {40}> "
        f"{{ y = com.microsoft.RelativePositionBias <max_distance = 32, is_bidirectional = {both}> (t, q, k) }}"
    )
    feed, made = own(text, tmp_path / "a.onnx")

    def bucket(distance):  # Raffel et al., 2020, section 2.1, as T5's code has it
        buckets, start = 16, 0
        if both:
            buckets //= 2
            start, distance = buckets * (distance > 0), abs(distance)
        else:
            distance = -min(distance, 0)
        near = buckets // 2
        if distance < near:
            return start + distance
        far = near + int(math.log(distance / near) / math.log(32 / near) * (buckets - near))
        return start + min(far, buckets - 1)

    expected = [[feed["t"][bucket(key - query)] for key in range(40)] for query in range(9)]
    close(made["y"][0], np.moveaxis(np.array(expected), 2, 0))


@pytest.mark.parametrize(
    "op",
    [
        "QLinearConv <pads=[1,1,0,0]> (x, s, z, w, s, z, s, z)",
        "MaxPool <kernel_shape=[2,2]> (x)",
        "DepthToSpace <blocksize=2> (x)",
    ],
)
def test_operators_of_the_layout_transformer(tmp_path, op):
    kind = "float" if "Depth" in op else "uint8"
    constants = "<float s = {0.02}, uint8 z = {120}, uint8[4,4,3,3] w = {@w}>"
    plain = f"({kind}[1,4,6,5] x) => ({kind}[?] y) {constants} {{ y = {op} }}"
    feed, expected = own(plain, tmp_path / "plain.onnx")
    last = plain.replace("[1,4,6,5]", "[1,6,5,4]").replace(f"y = {op}", f"y = com.ms.internal.nhwc.{op}")
    _, made = own(last, tmp_path / "last.onnx", x=feed["x"].transpose(0, 2, 3, 1).copy())
    np.testing.assert_array_equal(made["y"], expected["y"].transpose(0, 2, 3, 1))
