"""Networks of OpenVINO's operators written as ONNX; expected values are what OpenVINO itself computes of them."""

from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest

from tensortriage_engines.arrangement import arrangements
from tensortriage_engines.openvino.intermediate import read
from tensortriage_engines.openvino.translation import ends_of, translated

ov = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset13")
RANDOM = np.random.default_rng(0)


def drawn(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def parameter(*shape, dtype=np.float32):
    return ops.parameter(list(shape), dtype, name="x")


def compressed(stored, zero, scale):
    """Return weights as NNCF stores them: integers, less a zero point, times a scale."""
    whole = ops.convert(ops.constant(stored), "f32")
    return ops.multiply(ops.subtract(whole, ops.convert(ops.constant(zero), "f32")), ops.constant(scale))


def convolution():
    x = parameter(1, 4, 9, 9)
    conv = ops.convolution(x, ops.constant(drawn(6, 4, 3, 3)), [2, 2], [1, 1], [1, 1], [1, 1])
    return x, ops.relu(ops.add(conv, ops.constant(drawn(1, 6, 1, 1))))


def groups():
    x = parameter(1, 4, 8, 8)
    weight = compressed(
        RANDOM.integers(0, 255, (4, 1, 1, 3, 3), np.uint8), np.full((4, 1, 1, 1, 1), 127, np.uint8),
        RANDOM.uniform(0.01, 0.02, (4, 1, 1, 1, 1)).astype(np.float32),
    )  # fmt: skip
    return x, ops.group_convolution(x, weight, [1, 1], [1, 1], [1, 1], [1, 1])


def blocks():
    x = parameter(2, 16)
    weight = compressed(
        RANDOM.integers(0, 15, (3, 4, 4), np.uint8), RANDOM.integers(5, 9, (3, 4, 1)).astype(np.uint8),
        RANDOM.uniform(0.1, 0.2, (3, 4, 1)).astype(np.float32),
    )  # fmt: skip
    joined = ops.reshape(weight, ops.constant(np.array([3, 16])), special_zero=False)
    return x, ops.matmul(x, joined, transpose_a=False, transpose_b=True)


def quantized(low=-1.28, high=1.27):
    x = parameter(3, 40)
    ends = [ops.constant(np.float32(end)) for end in (low, high, low, high)]
    return x, ops.fake_quantize(x, *ends, 256)


def between_levels():
    return quantized(-1.0, 1.37)


def resized():
    x = parameter(1, 2, 5, 5)
    sizes, axes = ops.constant(np.array([9, 7])), ops.constant(np.array([2, 3]))
    made = ops.interpolate(x, sizes, "linear_onnx", "sizes", coordinate_transformation_mode="asymmetric", axes=axes)
    return x, made


def normalized():
    x = parameter(2, 6, 8)
    return x, ops.mvn(x, ops.constant(np.array([-1])), True, 1e-3, "inside_sqrt")


def sliced():
    x = parameter(4, 5, 6)
    begin, end, step = (ops.constant(np.array(each)) for each in ([1, 0, -1], [0, 4, 0], [1, 2, -2]))
    return x, ops.strided_slice(x, begin, end, step, [0, 1, 0], [1, 0, 0], [], [0, 0, 0], [])


def recurrent():
    x, size = parameter(2, 5, 3), 4
    state = ops.constant(drawn(2, 1, size))
    weights = [ops.constant(drawn(1, 4 * size, width)) for width in (3, size)]
    lengths, bias = ops.constant(np.array([5, 5])), ops.constant(drawn(1, 4 * size))
    return x, ops.lstm_sequence(x, state, state, lengths, *weights, bias, size, "forward").output(0)


def attention():
    x = parameter(1, 2, 6, 8)
    mask = ops.constant(np.tril(np.ones((6, 6), bool)))
    return x, ops.scaled_dot_product_attention(x, x, x, mask, causal=False)


MADE = [convolution, groups, blocks, quantized, between_levels, resized, normalized, sliced, recurrent, attention]


@pytest.mark.parametrize(
    ("made", "half"),
    [*((each, False) for each in MADE), (convolution, True), (blocks, True)],
    ids=lambda made: getattr(made, "__name__", "fp16" if made else "fp32"),
)
def test_it_computes_the_same(tmp_path, made, half):
    x, result = made()
    network = ov.Model([result], [x], "network")
    ov.save_model(network, str(tmp_path / "m.xml"), compress_to_fp16=half)
    compiled = ov.compile_model(str(tmp_path / "m.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    feed = drawn(*x.shape)
    assert as_onnx(tmp_path / "m.xml", feed) == pytest.approx(compiled(feed)[0], rel=1e-4, abs=1e-5)


def as_onnx(path, feed):
    """Return what a file computes, written as ONNX, on ONNX Runtime."""
    file = read(path)
    held, _ = ends_of(file, ([], []))
    way = arrangements(held, held, {})[0]
    model = translated(file, SimpleNamespace(graph=SimpleNamespace(values={})), way, held)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: feed})[0]


def test_quantizers_are_pairs_and_weights_stay_as_they_are_stored(tmp_path):
    x, result = blocks()
    ov.save_model(ov.Model([result], [x], "network"), str(tmp_path / "m.xml"), compress_to_fp16=False)
    file = read(tmp_path / "m.xml")
    held, _ = ends_of(file, ([], []))
    model = translated(file, SimpleNamespace(graph=SimpleNamespace(values={})), arrangements(held, held, {})[0], held)
    (node,) = [node for node in model.graph.node if node.op_type == "DequantizeLinear"]
    attributes = {each.name: each.i for each in node.attribute}
    assert attributes == {"axis": 0, "block_size": 4}  # groups of four along what is summed over
    assert [node.op_type for node in model.graph.node] == ["DequantizeLinear", "MatMul"]
