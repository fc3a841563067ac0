"""Bodies of ONNX Runtime's own operators; every expected value is what ONNX Runtime's CPU kernel gives."""

import numpy as np
import onnx
import pytest

from runtime_layers import CASES as LAYERS
from runtime_layers import LOOSE, NEWER, WITHOUT_KERNEL
from runtime_operators import answers, fed, same_as_the_kernel, written
from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.operator_body import INTEGERS, PAIRS, writers
from tensortriage.model.operator_bodies.replace_nodes import with_bodies

X, S = "float[2,3,8] x", "float[2,3,8] s"
Q = "float xs, uint8 xz, float ys, uint8 yz"
CASES = {
    "Gelu": f"({X}) => (float[?] y) {{ y = com.microsoft.Gelu(x) }}",
    "BiasGelu": f"({X}, float[8] b) => (float[?] y) {{ y = com.microsoft.BiasGelu(x, b) }}",
    "FastGelu": f"({X}, float[8] b) => (float[?] y) {{ y = com.microsoft.FastGelu(x, b) }}",
    "QuickGelu": f"({X}) => (float[?] y) {{ y = com.microsoft.QuickGelu <alpha = 1.5> (x) }}",
    "SkipLayerNormalization": f"({X}, {S}, float[8] g, float[8] o, float[8] b) => (float[?] y, float[?] z) "
    "{ y, , , z = com.microsoft.SkipLayerNormalization <epsilon = 0.001> (x, s, g, o, b) }",
    "SkipSimplifiedLayerNormalization": f"({X}, {S}, float[8] g) => (float[?] y, float[?] z) "
    "{ y, , , z = com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 0.001> (x, s, g) }",
    "SimplifiedLayerNormalization": f"({X}, float[8] g) => (float[?] y) "
    "{ y = SimplifiedLayerNormalization <epsilon = 0.001> (x, g) }",
    "EmbedLayerNormalization": "(int32[2,3] ids, int32[2,3] segments, float[9,8] w, float[5,8] p, float[2,8] t, "
    "float[8] g, float[8] o, int32[2,3] mask) => (float[?] y, int32[?] m) "
    "{ y, m = com.microsoft.EmbedLayerNormalization <epsilon = 0.001> (ids, segments, w, p, t, g, o, mask) }",
    "FusedMatMul": "(float[2,5,3] x, float[2,4,5] s) => (float[?] y) "
    "{ y = com.microsoft.FusedMatMul <transA = 1, transB = 1, alpha = 0.5> (x, s) }",
    "FusedConv": "(float[1,3,6,6] x, float[4,3,3,3] w, float[4] b, float[1,4,4,4] z) => (float[?] y) { y = "
    'com.microsoft.FusedConv <activation = "LeakyRelu", activation_params = [0.1], '
    "kernel_shape = [3, 3]> (x, w, b, z) }",
    "FusedGemm": "(float[2,3] x, float[4,3] w, float[4] b) => (float[?] y) "
    '{ y = com.microsoft.FusedGemm <activation = "Relu", transB = 1, alpha = 0.5> (x, w, b) }',
    "GroupQueryAttention, a prompt": "(float[2,3,32] q, float[2,3,16] k, float[2,3,16] v, float[2,2,0,8] pk, "
    "float[2,2,0,8] pv) => (float[?] y, float[?] ok, float[?] ov) <int32[2] last = {2, 2}, int32 total = {3}> "
    "{ y, ok, ov = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2> "
    "(q, k, v, pk, pv, last, total) }",
    "GroupQueryAttention, rows of different length": "(float[2,1,64] q, float[2,1,32] k, float[2,1,32] v, "
    "float[2,2,8,16] pk, float[2,2,8,16] pv) => (float[?] y, float[?] ok, float[?] ov) "
    "<int32[2] last = {6, 3}, int32 total = {7}, float[9,8] c = {@c}, float[9,8] d = {@d}> "
    "{ y, ok, ov = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2, do_rotary = 1> "
    "(q, k, v, pk, pv, last, total, c, d) }",
    "GroupQueryAttention, packed, in a window": "(float[1,2,256] q, float[1,2,5,32] pk, float[1,2,5,32] pv) => "
    "(float[?] y, float[?] ok, float[?] ov) <int32[1] last = {6}, int32 total = {7}, "
    "float[9,8] c = {@c}, float[9,8] d = {@d}> { y, ok, ov = com.microsoft.GroupQueryAttention <num_heads = 4, "
    "kv_num_heads = 2, local_window_size = 3, softcap = 2.0, scale = 0.7, do_rotary = 1, rotary_interleaved = 1> "
    "(q, , , pk, pv, last, total, c, d) }",
    "QuantizeLinear": f"({X}, float s, uint16 z) => (uint16[?] y) {{ y = com.microsoft.QuantizeLinear(x, s, z) }}",
    "DequantizeLinear": "(uint16[2,3,8] x, float s, uint16 z) => (float[?] y) "
    "{ y = com.microsoft.DequantizeLinear(x, s, z) }",
    "QLinearAdd": f"(uint8[2,3,8] x, {Q}, uint8[2,3,8] t, float ts, uint8 tz) => (uint8[?] y) "
    "{ y = com.microsoft.QLinearAdd(x, xs, xz, t, ts, tz, ys, yz) }",
    "QLinearMul": f"(uint8[2,3,8] x, {Q}, uint8[2,3,8] t, float ts, uint8 tz) => (uint8[?] y) "
    "{ y = com.microsoft.QLinearMul(x, xs, xz, t, ts, tz, ys, yz) }",
    "QLinearSigmoid": f"(uint8[2,3,8] x, {Q}) => (uint8[?] y) "
    "{ y = com.microsoft.QLinearSigmoid(x, xs, xz, ys, yz) }",
    "QLinearLeakyRelu": f"(uint8[2,3,8] x, {Q}) => (uint8[?] y) "
    "{ y = com.microsoft.QLinearLeakyRelu <alpha = 0.2> (x, xs, xz, ys, yz) }",
    "QLinearSoftmax": "(uint8[2,3,8] x, float xs, uint8 xz) => (uint8[?] y) <float ps = {0.00390625}, uint8 pz = {0}> "
    "{ y = com.microsoft.QLinearSoftmax <axis = -1, opset = 13> (x, xs, xz, ps, pz) }",
    "QLinearGlobalAveragePool": f"(uint8[1,2,5,5] x, {Q}) => (uint8[?] y) "
    "{ y = com.microsoft.QLinearGlobalAveragePool(x, xs, xz, ys, yz) }",
    "QLinearAveragePool": f"(uint8[1,2,6,6] x, {Q}) => (uint8[?] y) "
    "{ y = com.microsoft.QLinearAveragePool <kernel_shape = [2, 2]> (x, xs, xz, ys, yz) }",
    "QLinearConcat": f"(uint8[2,3] x, {Q}, uint8[2,4] t, float ts, uint8 tz) => (uint8[?] y) "
    "{ y = com.microsoft.QLinearConcat <axis = 1> (ys, yz, x, xs, xz, t, ts, tz) }",
    "QGemm": f"(uint8[2,6] x, {Q}, float ws) => (uint8[?] y) <uint8[6,4] w = {{@i}}, uint8 wz = {{128}}> "
    "{ y = com.microsoft.QGemm(x, xs, xz, w, ws, wz, , ys, yz) }",
    "DynamicQuantizeMatMul": "(float[2,6] x, float ws, float[4] b) => (float[?] y) "
    "<uint8[6,4] w = {@i}, uint8 wz = {128}> { y = com.microsoft.DynamicQuantizeMatMul(x, w, ws, wz, b) }",
    "MatMulIntegerToFloat": "(uint8[2,6] x, float xs, uint8 xz, float ws) => (float[?] y) "
    "<uint8[6,4] w = {@i}, uint8 wz = {128}> { y = com.microsoft.MatMulIntegerToFloat(x, w, xs, ws, xz, wz) }",
}  # fmt: skip


@pytest.mark.parametrize("opset", [11, 21])
@pytest.mark.parametrize("case", CASES)
def test_a_body_computes_what_the_kernel_does(case, opset, tmp_path):
    same_as_the_kernel(CASES[case], opset, tmp_path / "m.onnx")


@pytest.mark.parametrize("opset", [11, 21])
@pytest.mark.parametrize("case", LAYERS)
def test_a_body_of_a_layer_computes_what_the_kernel_does(case, opset, tmp_path):
    if opset < NEWER.get(case, 0):
        pytest.skip("no standard operator has it yet")
    same_as_the_kernel(LAYERS[case], opset, tmp_path / "m.onnx", atol=LOOSE.get(case, 2e-6))


def test_every_writer_is_tried():
    tried = {case.partition(",")[0] for case in (*CASES, *LAYERS)} | WITHOUT_KERNEL | {"MatMulNBits"}
    elsewhere = (".attention", ".convolutions")  # the latter by files that ONNX Runtime optimized
    ours = {name: writer for name, writer in writers().items() if not name.startswith((PAIRS, INTEGERS))}
    assert tried >= {name for name, writer in ours.items() if not writer.__module__.endswith(elsewhere)}


def few_bits(path, arrays, **attributes):
    """Write a product by packed weights."""
    node = onnx.helper.make_node("MatMulNBits", ["x", *arrays], ["y"], domain="com.microsoft", **attributes)
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [None, attributes["K"]])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.parametrize(("bits", "zeros"), [(4, ""), (4, "packed"), (4, "real"), (8, ""), (8, "packed")])
def test_weights_of_few_bits(bits, zeros, tmp_path):
    terms, columns, block, blocks = 40, 3, 16, 3
    random = np.random.default_rng(0)
    packed = random.integers(0, 256, (columns, blocks, block * bits // 8), np.uint8)
    arrays = {"w": packed, "scale": random.uniform(0.01, 0.1, columns * blocks).astype(np.float32)}
    if zeros == "packed":
        arrays["zero"] = random.integers(0, 256, (columns, -(-blocks * bits // 8)), np.uint8)
    elif zeros:
        arrays["zero"] = random.uniform(4, 9, columns * blocks).astype(np.float32)
    path = few_bits(tmp_path / "m.onnx", arrays, K=terms, N=columns, bits=bits, block_size=block)
    truth, own = answers(path, {"x": random.standard_normal((2, terms), np.float32)})
    np.testing.assert_allclose(own["y"], truth["y"], rtol=2e-5, atol=2e-6)


def test_activations_that_a_node_lets_be_int8_are_so_where_kernels_are_followed(tmp_path):
    terms, columns, block = 256, 48, 32
    random = np.random.default_rng(0)
    arrays = {
        "w": random.integers(0, 256, (columns, terms // block, block // 2), np.uint8),
        "scale": random.uniform(0.01, 0.1, columns * terms // block).astype(np.float32),
    }
    path = few_bits(tmp_path / "m.onnx", arrays, K=terms, N=columns, bits=4, block_size=block, accuracy_level=4)
    feed = {"x": random.standard_normal((4, terms), np.float32)}
    truth, exact = answers(path, feed)
    _, followed = answers(path, feed, rounding="results", accumulator="fp32")

    def off(own):
        return float(np.sqrt(np.mean((own["y"] - truth["y"]) ** 2) / np.mean(truth["y"] ** 2)))

    assert off(exact) > 2e-3  # half a step in int8 is 1/254 of the largest of 32, 0.3 of it on average
    assert off(followed) < off(exact) / 20


CHAIN = f"""({X}, {S}, float[8] g, float[8] o) => (float[?] y) <float[8,24] w = {{@w}}, float[24] b = {{@b}}> {{
    n = com.microsoft.SkipLayerNormalization(x, s, g, o)
    h = com.microsoft.Attention <num_heads = 2> (n, w, b)
    m = com.microsoft.SkipLayerNormalization(h, n, g, o)
    f = com.microsoft.BiasGelu(m, o)
    y = com.microsoft.FusedMatMul <transB = 1> (f, m)
}}"""


def test_a_chain_whose_shapes_only_bodies_tell_is_written_out_and_rounded_inside(tmp_path):
    model = written(CHAIN, 17)
    onnx.save(model, tmp_path / "m.onnx")
    plain = with_bodies(Model.load(tmp_path / "m.onnx"))
    assert {node.domain for node in plain.graph.nodes} == {""}
    assert {"n", "h", "m", "f", "y"} <= {value for node in plain.graph.nodes for value in node.outputs}
    feed = fed(model)
    truth, own = answers(tmp_path / "m.onnx", feed)
    np.testing.assert_allclose(own["y"], truth["y"], rtol=2e-5, atol=2e-5)
    narrow = Float64Engine().compile(tmp_path / "m.onnx", {"format": "fp16", "rounding": "results"}).run(feed)["y"]
    error = np.sqrt(np.mean((narrow - own["y"]) ** 2) / np.mean(own["y"] ** 2))
    assert 2**-13 < error < 2**-8  # a few roundings of half a unit in fp16's last place, 2^-11


def test_a_form_without_body_stays(tmp_path):
    text = CASES["FusedConv"].replace("LeakyRelu", "Softplus")
    onnx.save(written(text, 17), tmp_path / "m.onnx")
    assert [node.op_type for node in with_bodies(Model.load(tmp_path / "m.onnx")).graph.nodes] == ["FusedConv"]
