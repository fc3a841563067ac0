"""Arrays as values of ONNX Runtime and back, without a copy.

Feeds are an `OrtValue` on the caller's memory, results are arrays on the memory of an `OrtValue` that lives as long as
the array. That also makes every ONNX element type work, those that ONNX Runtime's own numpy bridge does not know
(bfloat16, float8, int4) included.
"""

import ctypes
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tensortriage.values.dtype import DType
from tensortriage_worker.encoding import pack, unpack

_BRIDGED = frozenset(d for d in DType if d.numpy.isbuiltin == 1 and d is not DType.STRING)
_NOTHING = ctypes.c_uint8()


def to_ort_value(ort: Any, array: np.ndarray) -> Any:
    """Return an OrtValue on an array's memory; sub-byte elements are packed into memory of its own.

    Args:
        ort: The module ``onnxruntime``.
        array: Any array of an ONNX element type other than string.
    """
    values = ort.OrtValue
    dtype = DType.from_numpy(array.dtype)
    if dtype in _BRIDGED:
        return values.ortvalue_from_numpy(array)
    if dtype.bits >= 8:
        return values.ortvalue_from_numpy_with_onnx_type(array, dtype.value)
    value = values.ortvalue_from_shape_and_type(list(array.shape), dtype.value)
    packed = pack(np.ascontiguousarray(array).reshape(-1).view(np.uint8), dtype.bits)
    ctypes.memmove(value.data_ptr(), packed.ctypes.data, packed.nbytes)
    return value


def feed_with_strings(ort: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return a feed for ``InferenceSession.run``, the only door for strings: they as arrays, all else as OrtValue."""
    return {
        name: array.astype(object) if array.dtype.kind in "USO" else to_ort_value(ort, array)
        for name, array in arrays.items()
    }


def to_array(value: Any, fed: set[int]) -> np.ndarray:
    """Return a result's memory as an array that keeps it alive; a copy where it is the caller's own feed."""
    dtype = DType(value.element_type())
    if dtype in _BRIDGED or dtype is DType.STRING:
        array: np.ndarray = value.numpy()
    else:
        raw = np.asarray(_Memory(value))
        shape = tuple(value.shape())
        if dtype.bits < 8:  # ml_dtypes wants the element in the low bits, the others zero
            raw = unpack(raw, dtype.bits, math.prod(shape), signed=False)
        array = raw.view(dtype.numpy).reshape(shape)
    return array.copy() if dtype is not DType.STRING and value.data_ptr() in fed else array


class _Memory:
    """The bytes of a tensor OrtValue, as an object that numpy can make an array on and keep alive with it."""

    def __init__(self, value: Any) -> None:
        self.owner = value
        size = value.tensor_size_in_bytes()
        place = value.data_ptr() if size else ctypes.addressof(_NOTHING)
        self.__array_interface__ = {"data": (place, False), "shape": (size,), "typestr": "|u1", "version": 3}
