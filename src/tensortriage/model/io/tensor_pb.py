"""One tensor in one protobuf file: the ``input_0.pb`` of ONNX test data sets."""

from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped] # protobuf ships no annotations
from onnx import numpy_helper

from tensortriage.errors import DataError
from tensortriage.values.dtype import DType
from tensortriage.values.files import read_regular


def read_tensor(path: Path) -> tuple[str, np.ndarray]:
    """Read a serialized ``TensorProto``.

    Returns:
        The name inside the file (may be empty) and the array: bf16, fp8 and int4 as ml_dtypes arrays, strings as
        object arrays of str.

    Raises:
        DataError: When the file is no tensor, or not a whole one (``tensor-unreadable``), or keeps its data in another
            file (``tensor-external``).
    """
    proto = onnx.TensorProto()
    try:
        proto.ParseFromString(read_regular(path, most=(1 << 31) - 1))
        if proto.data_location == onnx.TensorProto.EXTERNAL:
            raise DataError(
                f"{path} keeps its data in another file", slug="tensor-external", cure="save it with the data inside"
            )
        if proto.data_type not in {member.value for member in DType}:
            raise ValueError(f"element type {proto.data_type}")
        array = numpy_helper.to_array(proto)
        if proto.data_type == DType.STRING.value:
            words = [word.decode("utf-8", "surrogateescape") for word in proto.string_data]
            array = np.array([*words, None], dtype=object)[:-1].reshape(tuple(proto.dims))
    except (DecodeError, ValueError, TypeError, KeyError, MemoryError, OverflowError) as error:
        raise DataError(
            f"{path} is not a whole ONNX tensor: {error}",
            slug="tensor-unreadable",
            cure="write it with onnx.save_tensor(onnx.numpy_helper.from_array(array, name), path); sequences, optional "
            "and sparse inputs are not supported",
        ) from error
    return proto.name, array


def write_tensor(path: Path, name: str, array: np.ndarray) -> None:
    """Write one array as a serialized ``TensorProto``.

    Raises:
        UsageError: For an element type without ONNX counterpart (``dtype-unknown``).
    """
    if DType.from_numpy(array.dtype) is DType.STRING:
        array = array.astype(object)
    path.write_bytes(numpy_helper.from_array(np.asarray(array, order="C"), name).SerializeToString())
