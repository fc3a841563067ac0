"""Tensors that are not what they say."""

import numpy as np
import onnx
import pytest

import models
from tensortriage.errors import ModelError
from tensortriage.model.model import Model


def load(tmp_path, tensor, *, sparse=False):
    message = models.proto("g (float[1] x) => (float[1] y) { [user] y = Add(x, w) }")
    (message.graph.sparse_initializer if sparse else message.graph.initializer).append(tensor)
    return Model.load(models.write(tmp_path / "m.onnx", message))


def refusal(tmp_path, tensor, **options):
    with pytest.raises(ModelError) as caught:
        load(tmp_path, tensor, **options)
    assert "'w'" in caught.value.message
    return caught.value.slug


@pytest.mark.parametrize("number", [0, 27, 99])
def test_unknown_element_types(tmp_path, number):
    # 27 is FLOAT6E2M3, which numpy code of this program has no counterpart for.
    assert (
        refusal(tmp_path, onnx.TensorProto(name="w", dims=[1], data_type=number, raw_data=b"1234"))
        == "dtype-unsupported"
    )


def test_unknown_element_types_of_values(tmp_path):
    message = models.proto("g (float[1] x) => (float[1] y) { y = Neg(x) }")
    message.graph.input[0].type.tensor_type.elem_type = 99
    with pytest.raises(ModelError) as caught:
        Model.load(models.write(tmp_path / "m.onnx", message))
    assert (caught.value.slug, "'x'" in caught.value.message) == ("dtype-unsupported", True)


@pytest.mark.parametrize(
    "fields",
    [
        {"dims": [2], "raw_data": bytes(4)},
        {"dims": [1], "raw_data": bytes(5)},
        {"dims": [-1], "raw_data": b""},
        {"dims": [2**40, 2**40], "raw_data": bytes(4)},
        {"dims": [1]},
        {"dims": [2], "float_data": [1]},
        {"dims": [1], "int64_data": [1]},
        {"dims": [], "raw_data": b""},
    ],
    ids=str,
)
def test_shapes_and_data_that_disagree(tmp_path, fields):
    assert refusal(tmp_path, onnx.TensorProto(name="w", data_type=1, **fields)) == "tensor-invalid"


@pytest.mark.parametrize(
    ("data_type", "fields", "wanted"),
    [
        (onnx.TensorProto.FLOAT, {"dims": [0, 3], "raw_data": b""}, []),
        (onnx.TensorProto.FLOAT, {"dims": [0]}, []),
        (onnx.TensorProto.FLOAT, {"dims": [], "float_data": [2]}, 2),
        (onnx.TensorProto.COMPLEX64, {"dims": [1], "float_data": [1, 2]}, [1 + 2j]),
        (onnx.TensorProto.UINT4, {"dims": [3], "int32_data": [0x21, 0x03]}, [1, 2, 3]),
        (onnx.TensorProto.UINT2, {"dims": [5], "raw_data": b"\x1b\x02"}, [3, 2, 1, 0, 2]),
        (onnx.TensorProto.STRING, {"dims": [2], "string_data": [b"a", b"\xc3\xbc"]}, ["a", "ü"]),
    ],
)
def test_ways_to_store_a_tensor(tmp_path, data_type, fields, wanted):
    model = load(tmp_path, onnx.TensorProto(name="w", data_type=data_type, **fields))
    assert model.graph.weight("w").tolist() == wanted


def test_an_attribute_that_promises_a_tensor_and_has_none(tmp_path):
    message = models.proto("g () => (float[1] y) { [c] y = Constant() }")
    message.graph.node[0].attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    with pytest.raises(ModelError) as caught:
        Model.load(models.write(tmp_path / "m.onnx", message))
    assert (caught.value.slug, "'c'" in caught.value.message) == ("dtype-unsupported", True)


def sparse(values, indices, dims):
    return onnx.helper.make_sparse_tensor(
        onnx.numpy_helper.from_array(np.array(values, np.float32), "w"),
        onnx.numpy_helper.from_array(np.array(indices, np.int64), "i"),
        dims,
    )


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]], ids=["linear", "per axis"])
def test_sparse_initializers_become_dense(tmp_path, indices):
    model = load(tmp_path, sparse([7, 8], indices, [2, 3]), sparse=True)
    assert model.graph.weight("w").tolist() == [[0, 7, 0], [0, 0, 8]]
    saved = onnx.load(model.save(tmp_path / "saved.onnx"))
    assert [tensor.name for tensor in saved.graph.initializer] == ["w"]


def test_sparse_constants_become_dense(tmp_path):
    message = models.proto("g (float[2] x) => (float[2] y) { [c] w = Constant()  y = Add(x, w) }")
    message.graph.node[0].attribute.append(onnx.helper.make_attribute("sparse_value", sparse([3], [1], [2])))
    assert Model.load(models.write(tmp_path / "m.onnx", message)).graph.weight("w").tolist() == [0, 3]


@pytest.mark.parametrize(
    ("values", "indices", "dims"),
    [([1], [6], [2, 3]), ([1], [-1], [2, 3]), ([1, 2], [0], [2]), ([1], [0], [2**31]), ([1], [[0, 0, 0]], [2, 3])],
)
def test_sparse_tensors_that_do_not_fit(tmp_path, values, indices, dims):
    assert refusal(tmp_path, sparse(values, indices, dims), sparse=True) == "tensor-invalid"
