"""Weights in blocks as files store them, next to the real numbers by ONNX's definition and ONNX Runtime's kernel."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tensortriage.model.model import Model
from tensortriage_quantize.blocks_of_file import blocked_weights

TERMS, COLUMNS, BLOCK = 40, 6, 16
RANDOM = np.random.default_rng(3)
NUMBERS = RANDOM.integers(0, 16, (TERMS, COLUMNS))
SCALES = RANDOM.uniform(0.1, 0.4, (3, COLUMNS)).astype(np.float32)
ZEROS = RANDOM.integers(0, 16, (3, COLUMNS))


def four_bits(name, array):
    flat = array.astype(np.uint8).ravel()
    raw = (flat[0::2] | flat[1::2] << 4).tobytes()
    return helper.make_tensor(name, TensorProto.UINT4, array.shape, raw, raw=True)


def saved(path, node, constants, opset=21):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, TERMS])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, COLUMNS])
    graph = helper.make_graph(node, "g", [x], [y], constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


def pairs(path):
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], name="d", axis=0, block_size=BLOCK),
        helper.make_node("MatMul", ["x", "w"], ["y"], name="m"),
    ]
    return saved(path, nodes, [four_bits("q", NUMBERS), numpy_helper.from_array(SCALES, "s"), four_bits("z", ZEROS)])


def packed(array, size):
    padded = np.pad(array, ((0, 0), (0, 2 * size - array.shape[1]))).astype(np.uint8)
    return padded[:, 0::2] | padded[:, 1::2] << 4


def product(path, *, zeros=True):
    constants = {"q": packed(NUMBERS.T, 24).reshape(COLUMNS, 3, 8), "s": SCALES.T.copy().ravel()}
    constants |= {"z": packed(ZEROS.T, 2).ravel()} if zeros else {}
    node = helper.make_node("MatMulNBits", ["x", *constants], ["y"], name="d", domain="com.microsoft", K=TERMS,
                            N=COLUMNS, bits=4, block_size=BLOCK, accuracy_level=1)  # fmt: skip
    return saved(path, [node], [numpy_helper.from_array(array, name) for name, array in constants.items()])


@pytest.mark.parametrize("made", [pairs, product])
def test_numbers_are_those_that_onnx_runtime_computes_with(tmp_path, made):
    path = made(tmp_path / "m.onnx")
    x = np.eye(TERMS, dtype=np.float32)[[5, 38]]
    (weight,) = blocked_weights(Model.load(path).graph)
    real = weight.stored.real() if made is product else weight.stored.real().T.T
    (right,) = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    np.testing.assert_allclose(real.T[[5, 38]], right, rtol=1e-5)
    assert weight.rows(np.empty((TERMS, COLUMNS)) if made is pairs else np.empty((COLUMNS, TERMS))).shape == real.shape


@pytest.mark.parametrize("made", [pairs, product])
def test_a_weight_is_put_right_where_it_stands(tmp_path, made):
    graph = Model.load(made(tmp_path / "m.onnx")).graph
    (weight,) = blocked_weights(graph)
    right = weight.right(graph, weight.stored)
    if made is pairs:
        spread = [np.repeat(each, BLOCK, 0)[:TERMS] for each in (SCALES, ZEROS)]
        np.testing.assert_allclose(right["w"], (NUMBERS - spread[1]) * spread[0], rtol=1e-6)
    else:
        assert right.keys() == {"q", "s", "z"}
        for name, array in right.items():
            np.testing.assert_array_equal(array, graph.weight(name))


def test_zero_points_without_a_place_are_not_put_in(tmp_path):
    graph = Model.load(product(tmp_path / "m.onnx", zeros=False)).graph
    (weight,) = blocked_weights(graph)
    assert (weight.stored.zero == 8).all()
    assert weight.right(graph, weight.stored).keys() == {"q", "s"}
    weight.stored.zero[0, 0] = 7
    assert weight.right(graph, weight.stored) == {}
