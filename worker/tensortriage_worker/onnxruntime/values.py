"""Tensors as values of ONNX Runtime and back, with numpy alone, for any release.

Types that numpy lacks travel as raw integers of their width, sub-byte ones as one element per byte; here they are put
into memory of ONNX Runtime's own.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure, Spec
from tensortriage_worker.encoding import pack, unpack
from tensortriage_worker.exchange import Item

# ONNX Runtime's words for element types: label here, number in ONNX (onnx.TensorProto.DataType), bits if packed.
TYPES = {
    "float": ("float32", 1, 0), "uint8": ("uint8", 2, 0), "int8": ("int8", 3, 0), "uint16": ("uint16", 4, 0),
    "int16": ("int16", 5, 0), "int32": ("int32", 6, 0), "int64": ("int64", 7, 0), "string": ("string", 8, 0),
    "bool": ("bool", 9, 0), "float16": ("float16", 10, 0), "double": ("float64", 11, 0), "uint32": ("uint32", 12, 0),
    "uint64": ("uint64", 13, 0), "bfloat16": ("bfloat16", 16, 0), "float8e4m3fn": ("float8_e4m3fn", 17, 0),
    "float8e4m3fnuz": ("float8_e4m3fnuz", 18, 0), "float8e5m2": ("float8_e5m2", 19, 0),
    "float8e5m2fnuz": ("float8_e5m2fnuz", 20, 0), "uint4": ("uint4", 21, 4), "int4": ("int4", 22, 4),
}  # fmt: skip
_NUMBER = {label: number for label, number, _ in TYPES.values()}
_BITS = {label: bits for label, _, bits in TYPES.values()}
# Bounded everywhere: messages hold names of models, which may have any length.
_SOURCE_PLACE = re.compile(r"(?<!\S)/\S+\.(?:cc|cpp|h|hpp|cuh?):\d+ (?:[^()]{0,400}\([^()]{0,2000}\)+(?: const)? )?")


def spec(arg: Any) -> Spec:
    """Return the spec of an input or output of a session.

    Raises:
        AdapterError: For anything but a tensor of a known type.
    """
    word = re.sub(r"^tensor\((.*)\)$", r"\1", arg.type)
    if word not in TYPES:
        message = "'{}' is {}, not a tensor".format(arg.name, arg.type)
        cure = "cut the model before it, e.g. with triage surgeon extract"
        raise AdapterError(AdapterFailure.BUILD, message, "value-not-a-tensor", cure)
    shape = [d if isinstance(d, str) or (d is not None and d >= 0) else None for d in arg.shape]
    return {"name": arg.name, "dtype": TYPES[word][0], "shape": shape}


def to_ort_value(ort: Any, item: Item, label: str) -> Any:
    """Return an OrtValue of ONNX Runtime's own memory.

    Args:
        ort: The module ``onnxruntime``.
        item: One tensor; 4-bit elements one a byte.
        label: Element type of the array.

    Raises:
        AdapterError: When this release takes no such type from numpy.
    """
    array = np.ascontiguousarray(item.array).reshape(item.array.shape)
    if hasattr(np, label) or label == "bool":
        return ort.OrtValue.ortvalue_from_numpy(array)
    if not hasattr(ort.OrtValue, "ortvalue_from_numpy_with_onnx_type"):
        message = "this release of ONNX Runtime takes no {} from numpy".format(label)
        raise AdapterError(AdapterFailure.RUN, message, "run-failed", "cast inside the model, or use a newer release")
    if not _BITS[label]:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, _NUMBER[label])
    value = ort.OrtValue.ortvalue_from_shape_and_type(list(array.shape), _NUMBER[label])
    packed = pack(array.reshape(-1).view(np.uint8), _BITS[label])
    ctypes.memmove(value.data_ptr(), packed.ctypes.data, packed.nbytes)
    return value


def to_item(name: str, value: Any, label: str) -> Item:
    """Return a result as a tensor on its way."""
    if hasattr(np, label) or label == "bool":
        return Item(name, value.numpy(), label)
    shape, bits = tuple(value.shape()), _BITS[label]
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.zeros((count * bits + 7) // 8 if bits else count * (2 if label == "bfloat16" else 1), np.uint8)
    ctypes.memmove(raw.ctypes.data, value.data_ptr(), raw.nbytes)
    if bits:
        return Item(name, unpack(raw, bits, count, signed=label == "int4").reshape(shape), label)
    return Item(name, raw.view(np.uint16 if label == "bfloat16" else np.uint8).reshape(shape), label)


def plain(item: Item) -> np.ndarray:
    """Return an array for the door that takes strings."""
    array: np.ndarray = item.array.astype(object) if item.label == "string" else item.array
    return array


def reason(error: BaseException) -> str:
    """Return an error of ONNX Runtime on one line, without its number and the place in its sources."""
    text = re.sub(r"^(\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : )?(Load model from .*? failed:)?", "", str(error))
    return " ".join(_SOURCE_PLACE.sub("", text).split())
