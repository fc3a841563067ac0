"""TensorRT's element types by name: their ranges, and the conversion of their bytes to arrays.

Members of ``trt.DataType`` are identified by name, never by number: numbers moved between releases. TensorRT's own
``nptype`` is not used: it knows neither bfloat16 nor fp8, and in 8.5 it needs an alias that numpy 1.24 dropped. Types
that numpy lacks travel as raw integers with their label, as everywhere in this package.
"""

from __future__ import annotations

import math
from typing import Any, Sequence, Tuple

import numpy as np

from tensortriage_worker.encoding import FORMATS, pack, unpack

LABELS = {
    "FLOAT": "float32", "HALF": "float16", "BF16": "bfloat16", "FP8": "float8_e4m3fn", "FP4": "float4_e2m1fn",
    "E8M0": "float8_e8m0fnu", "INT64": "int64", "INT32": "int32", "INT8": "int8", "INT4": "int4", "UINT8": "uint8",
    "BOOL": "bool",
}  # fmt: skip
"""Member name of ``trt.DataType``: label of the element type."""
FLOATS = ("FLOAT", "HALF", "BF16", "FP8", "FP4")
_NARROWED = {("int64", "int32"), ("float64", "float32"), ("bool", "uint8"), ("uint8", "bool")}


def word(member: Any) -> str:
    """Return the name of an enum member without its class, e.g. ``HALF``; pybind11 spells it in several ways."""
    name = getattr(member, "name", None)
    return name if isinstance(name, str) else str(member).rsplit(".", 1)[-1]


def label_of(dtype: Any) -> str:
    """Return the label of a ``trt.DataType``; the lower-case name of an unknown one."""
    name = word(dtype)
    return LABELS.get(name, name.lower())


def byte_count(label: str, shape: Sequence[int]) -> int:
    """Return the bytes of a tensor in TensorRT's linear layout; two elements of four bits share a byte."""
    count = 1
    for size in shape:
        count *= int(size)
    form = FORMATS[label]
    if form.packed_bits:
        return -(-count * form.packed_bits // 8)
    return count * np.dtype(form.raw).itemsize


def to_bytes(array: np.ndarray, label: str, wanted: str) -> np.ndarray:
    """Return the bytes that TensorRT takes for a tensor: flat uint8.

    Args:
        array: The tensor.
        label: Element type of the array.
        wanted: The element type of TensorRT's input; narrower where TensorRT knows no such type.

    Raises:
        OverflowError: When a 64-bit integer does not fit 32 bits.
        TypeError: When the two types have nothing to do with each other.
    """
    if label != wanted:
        if (label, wanted) not in _NARROWED:
            raise TypeError("TensorRT takes {}, fed is {}".format(wanted, label))
        narrow = array.astype(FORMATS[wanted].raw)
        if wanted == "int32" and not np.array_equal(narrow, array):
            raise OverflowError("TensorRT takes int32, and a value does not fit it")
        array = narrow
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    bits = FORMATS[wanted].packed_bits
    return pack(flat, bits) if bits else flat


def from_bytes(data: np.ndarray, label: str, shape: Tuple[int, ...]) -> np.ndarray:
    """Return an array on (or, for elements of four bits, decoded from) flat bytes that TensorRT wrote.

    Args:
        data: Flat uint8.
        label: Element type.
        shape: Shape of the result, whose elements are raw integers where numpy lacks the type.
    """
    form = FORMATS[label]
    if form.packed_bits:
        return unpack(data, form.packed_bits, math.prod(shape), signed=form.raw == "|i1").reshape(shape)
    return data.view(form.raw).reshape(shape)
