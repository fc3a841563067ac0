"""Whether the tensors of a model file are well-formed: a known type, a sane shape, and exactly as many bytes."""

import math
from collections.abc import Iterator

import numpy as np
import onnx

from tensortriage.errors import ModelError
from tensortriage.model.io.check_limits import check_rank
from tensortriage.model.ir.display_names import quoted
from tensortriage.values.dtype import DType

_EXTERNAL_KEYS = frozenset({"location", "offset", "length", "checksum"})
_MAX_DENSE_BYTES = 1 << 31
STRIPPED_MARK = "TRT_WEIGHTLESS"
"""Start of the doc_string of a weight without numbers (Polygraphy, ``surgeon weight-strip``)."""

_DTYPES = {dtype.value: dtype for dtype in DType}
_TYPED_FIELDS = {
    **dict.fromkeys((DType.FLOAT, DType.COMPLEX64), "float_data"),
    **dict.fromkeys((DType.DOUBLE, DType.COMPLEX128), "double_data"),
    **dict.fromkeys((DType.UINT32, DType.UINT64), "uint64_data"),
    DType.INT64: "int64_data",
    DType.STRING: "string_data",
}
"""Field that holds the numbers when raw_data does not; int32_data for all other types (onnx.proto, TensorProto)."""


def known_dtype(number: int, where: str) -> DType:
    """Return the element type of a TensorProto.DataType number.

    Raises:
        ModelError: For a type that this program does not know (slug ``dtype-unsupported``).
    """
    try:
        return _DTYPES[number]
    except KeyError:
        known = onnx.TensorProto.DataType.values()
        name = onnx.TensorProto.DataType.Name(number) if number in known else f"number {number}"
        raise ModelError(
            f"{where} has element type {name}, which is not supported",
            slug="dtype-unsupported",
            cure="export the model with another element type",
        ) from None


def check_tensor(tensor: onnx.TensorProto, where: str, *, lifted_bytes: int | None = None) -> None:
    """Check one tensor; drops keys of external data that ONNX does not define.

    Args:
        tensor: The tensor; its data may have been lifted out.
        where: Place, for messages.
        lifted_bytes: Length of the raw_data that were lifted out; None when they were not.

    Raises:
        ModelError: ``dtype-unsupported``, ``tensor-invalid`` or ``external-data-invalid``.
    """
    dtype = known_dtype(tensor.data_type, where)
    check_rank(len(tensor.dims), where)
    if any(dim < 0 for dim in tensor.dims):
        raise _invalid(f"{where} has the impossible shape {list(tensor.dims)}")
    count = math.prod(tensor.dims)
    nbytes = (count * dtype.bits + 7) // 8
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        _check_external(tensor, dtype, nbytes, where)
        return
    if dtype is not DType.STRING and (lifted_bytes is not None or tensor.HasField("raw_data")):
        held = len(tensor.raw_data) if lifted_bytes is None else lifted_bytes
        if lifted_bytes is None and is_stripped(tensor):
            return
        if held != nbytes:
            raise _invalid(f"{where} of shape {list(tensor.dims)} needs {nbytes} bytes, but holds {held}")
        return
    needed = -(-count * dtype.bits // 8) if dtype.bits in (2, 4) else count
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        needed *= 2
    held = len(getattr(tensor, _TYPED_FIELDS.get(dtype, "int32_data")))
    if held != needed:
        raise _invalid(f"{where} of shape {list(tensor.dims)} needs {needed} numbers, but holds {held}")


def is_stripped(tensor: onnx.TensorProto) -> bool:
    """Return whether the numbers of a weight were removed on purpose, as TensorRT's tools do (and mark it so)."""
    return tensor.HasField("raw_data") and not tensor.raw_data and tensor.doc_string.startswith(STRIPPED_MARK)


def densify(graph: onnx.GraphProto, where: str) -> None:
    """Turn sparse initializers and sparse Constant nodes into dense ones, in place, as every engine does.

    Raises:
        ModelError: ``tensor-invalid``, also when the dense tensor would exceed 2 GiB.
    """
    for sparse in graph.sparse_initializer:
        graph.initializer.append(_dense(sparse, f"sparse initializer {quoted(sparse.values.name)} {where}"))
    graph.ClearField("sparse_initializer")
    for node, attribute in _sparse_attributes(graph):
        dense = _dense(attribute.sparse_tensor, f"sparse constant of node {quoted(node.name)} {where}")
        attribute.Clear()
        attribute.CopyFrom(onnx.helper.make_attribute("value", dense))


def _sparse_attributes(graph: onnx.GraphProto) -> Iterator[tuple[onnx.NodeProto, onnx.AttributeProto]]:
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "sparse_value" and attribute.type == onnx.AttributeProto.SPARSE_TENSOR:
                    yield node, attribute


def _dense(sparse: onnx.SparseTensorProto, where: str) -> onnx.TensorProto:
    """Scatter the values of a sparse tensor (onnx.proto, SparseTensorProto: linear or per-axis indices)."""
    check_tensor(sparse.values, where)
    check_tensor(sparse.indices, where)
    dtype = known_dtype(sparse.values.data_type, where)
    shape = tuple(sparse.dims)
    if any(dim < 0 for dim in shape) or math.prod(shape) * max(dtype.bits, 8) // 8 > _MAX_DENSE_BYTES:
        raise _invalid(f"{where} has shape {list(shape)}, which cannot be held in memory as a dense tensor")
    if onnx.TensorProto.EXTERNAL in (sparse.values.data_location, sparse.indices.data_location):
        raise _invalid(f"{where} is sparse and external, which is not supported")
    values, indices = onnx.numpy_helper.to_array(sparse.values), onnx.numpy_helper.to_array(sparse.indices)
    columns = (indices,) if indices.ndim < 2 else tuple(indices.T)
    limits = (math.prod(shape),) if indices.ndim < 2 else shape
    if len(limits) != len(columns) or len(values) != len(indices) or indices.dtype != np.int64:
        raise _invalid(f"{where} has {len(values)} values of shape {list(shape)}, but {indices.shape} indices")
    if any(((column < 0) | (column >= limit)).any() for column, limit in zip(columns, limits, strict=True)):
        raise _invalid(f"{where} has indices outside its shape {list(shape)}")
    dense = np.zeros(limits, dtype=values.dtype)
    dense[columns] = values
    return onnx.numpy_helper.from_array(dense.reshape(shape), sparse.values.name)


def _check_external(tensor: onnx.TensorProto, dtype: DType, nbytes: int, where: str) -> None:
    if dtype is DType.STRING:
        raise _external(f"{where} holds strings, which cannot be external")
    known = [entry for entry in tensor.external_data if entry.key in _EXTERNAL_KEYS]
    said = {entry.key: entry.value for entry in known}
    if not isinstance(said.get("location", ""), str):
        raise _external(f"{where} has external data in {quoted(said['location'])}, which is not UTF-8 text")
    for key, wanted in (("offset", None), ("length", nbytes)):
        text = said.get(key, "0")
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if number < 0 or (wanted is not None and number not in (0, wanted)):
            needs = "" if wanted is None else f" but needs {nbytes} bytes"
            raise _external(f"{where} has external data with {key} {quoted(text)}{needs}")
    del tensor.external_data[:]
    tensor.external_data.extend(known)


def _invalid(message: str) -> ModelError:
    return ModelError(message, slug="tensor-invalid", cure="the file is damaged: export or download the model again")


def _external(message: str) -> ModelError:
    return ModelError(message, slug="external-data-invalid", cure="export the model again")
