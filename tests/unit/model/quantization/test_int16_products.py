"""Files as kernels without VNNI compute them, against the arithmetic of one product; that is compared with the kernels
themselves in tests/engines/test_without_vnni.py.
"""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import running
from machine import exact_int8
from models import of_message
from tensortriage.compare.quantization.int16_sums import saturated_product, windows
from tensortriage.model.quantization.int16_products import int16_products

RNG = np.random.default_rng(0)
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


def large(dtype, shape):
    """Return integers, four of five near the upper end of their type and the others near the lower."""
    ends = np.iinfo(dtype)
    high = RNG.integers(ends.max - 60, ends.max, shape, endpoint=True)
    return np.where(RNG.random(shape) < 0.8, high, RNG.integers(ends.min, ends.min + 40, shape)).astype(dtype)


def between_pairs(op_type, data, weight, **attributes):
    """Return a product of integers that are inputs, with a data scale of 2, a weight scale of 0.5, and zero point 3."""
    constants = {"s": np.float32(2), "z": data.dtype.type(3), "w": weight, "t": np.float32(0.5)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "t"], ["b"]),
        helper.make_node(op_type, ["a", "b"], ["y"], name="product", **attributes),
    ]
    return message(nodes, data, constants, TensorProto.FLOAT)


def message(nodes, data, constants, kind):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TYPES[data.dtype.type], data.shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return of_message(helper.make_model(graph, opset_imports=OPSETS, ir_version=8))


def expected(data, weight):
    """Return the product without the zero point 3, as it saturates: int8 data are moved up between pairs."""
    return saturated_product(data, weight, moved=True) - 3.0 * weight.astype(float).sum(axis=0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("terms", [8, 33])
def test_matrix_products_between_pairs(dtype, terms):
    data, weight = large(dtype, (5, terms)), large(np.int8, (terms, 7))
    model = between_pairs("MatMul", data, weight)
    found = running.run(int16_products(model), {"x": data})["y"]
    np.testing.assert_allclose(found, expected(data, weight), rtol=1e-6)
    assert not np.allclose(found, running.run(model, {"x": data})["y"], rtol=1e-3)


def test_a_gemm_with_its_weight_transposed():
    data, weight = large(np.uint8, (5, 8)), large(np.int8, (7, 8))
    model = between_pairs("Gemm", data, weight, transB=1)
    found = running.run(int16_products(model), {"x": data})["y"]
    np.testing.assert_allclose(found, expected(data, weight.T), rtol=1e-6)


@pytest.mark.parametrize("by_tap", [False, True])
@pytest.mark.parametrize(("channels", "group"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2)])
def test_channels_are_innermost_in_convolutions(channels, group, by_tap):
    """By tap the last of three channels is added to a product by 0, not to the first of the next tap."""
    data, weight = large(np.uint8, (1, channels * group, 5, 5)), large(np.int8, (4, channels, 2, 2))
    model = between_pairs("Conv", data, weight, group=group)
    found = running.run(int16_products(model, by_tap=by_tap) or model, {"x": data})["y"]
    odd = [(0, 0), (0, channels % 2 * by_tap * (group == 1)), (0, 0), (0, 0)]
    sides = []
    for part, kernels in zip(np.split(data, group, axis=1), np.split(weight, group), strict=True):
        part, kernels = np.pad(part, odd), np.pad(kernels, odd)
        columns = np.moveaxis(kernels, 1, -1).reshape(len(kernels), -1).T
        sides.append(expected(windows(part, (2, 2), 3), columns))
    np.testing.assert_allclose(found.reshape(4, -1).T, np.concatenate(sides, axis=1), rtol=1e-6)


def test_a_padded_place_holds_the_zero_point():
    data, weight = large(np.uint8, (1, 2, 4, 4)), large(np.int8, (3, 2, 3, 3))
    found = running.run(int16_products(between_pairs("Conv", data, weight, pads=[1] * 4, strides=[2, 2])), {"x": data})
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=3)
    columns = np.moveaxis(weight, 1, -1).reshape(3, -1).T
    every = expected(windows(padded, (3, 3), 3), columns).reshape(4, 4, 3)[::2, ::2]
    np.testing.assert_allclose(found["y"].reshape(3, 2, 2).transpose(1, 2, 0), every, rtol=1e-6)


@exact_int8
def test_products_of_integers():
    data, weight = large(np.uint8, (5, 8)), large(np.int8, (8, 7))
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"], name="product")
    model = message([node], data, {"w": weight}, TensorProto.INT32)
    for fused in (True, False):
        found = running.run(int16_products(model, fused=fused), {"x": data})["y"]
        np.testing.assert_array_equal(found, saturated_product(data, weight))


def test_pairs_that_are_not_fused_are_exact():
    assert int16_products(between_pairs("MatMul", *(large(t, (8, 8)) for t in TYPES)), fused=False) is None


def test_what_fits_is_left_alone():
    weight = np.full((8, 7), 64, np.int8)
    assert int16_products(between_pairs("MatMul", large(np.uint8, (5, 8)), weight)) is None
    data, alone = large(np.uint8, (1, 4, 4, 4)), large(np.int8, (4, 1, 3, 3))  # depthwise: summed in int32
    model = between_pairs("Conv", data, alone, group=4)
    found = running.run(int16_products(model), {"x": data})["y"]
    np.testing.assert_array_equal(found, running.run(model, {"x": data})["y"])


@exact_int8
def test_attention_projects_by_a_product_that_saturates():
    """The bodies of attention are one for both: the projection by hand takes the place of the node's own."""
    data, weight = large(np.uint8, (2, 3, 8)), large(np.int8, (8, 24))
    step, scale, bias = np.float32(2**-8), np.float32(2**-9), np.zeros(24, np.float32)
    constants = {"w": weight, "b": bias, "s": step, "t": scale, "z": np.uint8(3), "n": np.int8(0)}
    words = ["x", "w", "b", "s", "t", "", "z", "n"]
    node = helper.make_node("QAttention", words, ["y"], "product", domain="com.microsoft", num_heads=2)
    model = message([node], data, constants, TensorProto.FLOAT)
    found = running.run(int16_products(model), {"x": data})["y"]
    q, k, v = np.split(expected(data.reshape(6, 8), weight).reshape(2, 3, 24) * step * scale, 3, axis=-1)
    q, k, v = (each.reshape(2, 3, 2, 4).transpose(0, 2, 1, 3) for each in (q, k, v))
    scores = np.exp(q @ k.swapaxes(-1, -2) / 2.0)  # the root of 4 numbers of a head
    right = (scores / scores.sum(axis=-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(2, 3, 8)
    np.testing.assert_allclose(found, right, rtol=1e-5)
    assert not np.allclose(found, running.run(model, {"x": data})["y"], rtol=1e-3)
