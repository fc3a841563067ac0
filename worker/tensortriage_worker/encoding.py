"""Encoding of tensors of every ONNX element type as bytes that a safetensors file can hold, and back.

Values that the format cannot express are stored as bytes of a type that it has, with a label for their meaning:

* sub-byte types are packed as ONNX packs them (first element in the lowest bits, flat, zero padded);
* complex128 is stored as float64 with one more axis (real, imaginary); float8 *fnuz types as uint8;
* strings as one UTF-8 JSON array.

``ml_dtypes`` is optional. Without it an array of a type that numpy lacks comes back as raw integers of the same width
(bfloat16 as uint16, float8 as uint8, int4 as int8, the other sub-byte types as int8 or uint8, one element each).
"""

import json
import math
from typing import Any, List, NamedTuple, Tuple, cast

import numpy as np


def _optional_ml_dtypes() -> Any:
    try:
        import ml_dtypes
    except ImportError:  # The worker promises to run with numpy alone.
        return None
    return ml_dtypes


_ML_DTYPES = _optional_ml_dtypes()


class ShardError(ValueError):
    """A malformed shard file, or a tensor that cannot be stored."""


class StoredFormat(NamedTuple):
    """Stored form of one element type: safetensors tag, numpy type of the stored bytes, bits per element if packed."""

    tag: str
    raw: str
    packed_bits: int = 0


# Keys are the labels used throughout TensorTriage (tensortriage.values.dtype.DType.label).
FORMATS = {
    "bool": StoredFormat("BOOL", "|b1"),
    "uint8": StoredFormat("U8", "|u1"),
    "int8": StoredFormat("I8", "|i1"),
    "uint16": StoredFormat("U16", "<u2"),
    "int16": StoredFormat("I16", "<i2"),
    "uint32": StoredFormat("U32", "<u4"),
    "int32": StoredFormat("I32", "<i4"),
    "uint64": StoredFormat("U64", "<u8"),
    "int64": StoredFormat("I64", "<i8"),
    "float16": StoredFormat("F16", "<f2"),
    "float32": StoredFormat("F32", "<f4"),
    "float64": StoredFormat("F64", "<f8"),
    "complex64": StoredFormat("C64", "<c8"),
    "complex128": StoredFormat("F64", "<c16"),
    "bfloat16": StoredFormat("BF16", "<u2"),
    "float8_e4m3fn": StoredFormat("F8_E4M3", "|u1"),
    "float8_e5m2": StoredFormat("F8_E5M2", "|u1"),
    "float8_e8m0fnu": StoredFormat("F8_E8M0", "|u1"),
    "float8_e4m3fnuz": StoredFormat("U8", "|u1"),
    "float8_e5m2fnuz": StoredFormat("U8", "|u1"),
    "uint4": StoredFormat("U8", "|u1", 4),
    "int4": StoredFormat("U8", "|i1", 4),
    "float4_e2m1fn": StoredFormat("U8", "|u1", 4),
    "uint2": StoredFormat("U8", "|u1", 2),
    "int2": StoredFormat("U8", "|i1", 2),
    "string": StoredFormat("U8", "|u1"),
}
TAG_ITEMSIZE = {
    "BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "U32": 4, "I32": 4, "U64": 8, "I64": 8, "F16": 2, "F32": 4,
    "F64": 8, "C64": 8, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
}  # fmt: skip
LABEL_OF_TAG = {
    form.tag: label
    for label, form in reversed(list(FORMATS.items()))
    if not form.packed_bits and label not in ("string", "complex128", "float8_e4m3fnuz", "float8_e5m2fnuz")
}


def label_of(array: np.ndarray) -> str:
    """Return the label of an array's element type, e.g. ``float32``, ``bfloat16``, ``int4``, ``string``.

    Raises:
        ShardError: For a numpy type that no ONNX tensor has (datetime, structured, longdouble).
    """
    if array.dtype.kind in "USO":
        return "string"
    label = array.dtype.newbyteorder("=").name
    if label not in FORMATS:
        raise ShardError("arrays of numpy type {} cannot be stored".format(array.dtype))
    return label


def item_size(label: str) -> int:
    """Return the alignment in bytes that stored data of this element type need."""
    return TAG_ITEMSIZE[FORMATS[label].tag]


def known_label(label: str) -> str:
    """Return the label itself.

    Raises:
        ShardError: When it names no element type.
    """
    if label not in FORMATS:
        raise ShardError("unknown element type {!r}".format(label))
    return label


def round_up(size: int, step: int) -> int:
    """Return the smallest multiple of ``step`` that is not below ``size``."""
    return -(-size // step) * step


def encode(array: np.ndarray, label: str) -> Tuple[np.ndarray, List[int]]:
    """Return the bytes to store (flat uint8) and the shape they have in the file.

    Args:
        array: Array of any layout; its items are as wide as those of ``label`` in memory.
        label: An element type of `FORMATS`; 4-bit ones come one a byte, and are packed.

    Raises:
        ShardError: When the items have another width.
    """
    form = FORMATS[label]
    if label == "string":
        text = json.dumps([_text(item) for item in array.reshape(-1).tolist()])
        data = np.frombuffer(text.encode("ascii"), np.uint8)
        return data, [data.nbytes]
    raw = np.dtype(form.raw)
    if array.dtype.itemsize != raw.itemsize:
        raise ShardError("an array of numpy type {} cannot hold {}".format(array.dtype, label))
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and raw.newbyteorder("=") != raw):
        array = array.byteswap()
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if form.packed_bits:
        flat = pack(flat, form.packed_bits)
        return flat, [flat.nbytes]
    shape = list(array.shape)
    return flat, [*shape, 2] if label == "complex128" else shape


def _text(item: Any) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)


def decode(data: np.ndarray, label: str, shape: Tuple[int, ...]) -> np.ndarray:
    """Return the array of stored bytes: a view of them, or decoded when packed or text.

    Args:
        data: Flat uint8.
        label: Element type, a key of `FORMATS`.
        shape: Shape of the result.

    Raises:
        ValueError, RecursionError: When they cannot.
    """
    form = FORMATS[label]
    if label == "string":
        items = json.loads(data.tobytes().decode("ascii"))
        if not isinstance(items, list) or len(items) != math.prod(shape):
            raise ValueError("not a list of {} strings".format(math.prod(shape)))
        if not all(isinstance(item, str) for item in items):
            raise ValueError("not only strings")
        strings = np.empty(len(items), dtype=object)
        strings[:] = items
        return strings.reshape(shape)
    if label == "bool" and (data > 1).any():
        raise ValueError("a bool that is neither 0 nor 1")
    found = memory_type(label)
    if form.packed_bits:  # ml_dtypes leaves the upper bits zero; a plain int8 needs its sign there.
        data = unpack(data, form.packed_bits, math.prod(shape), signed=found == np.int8)
    return data.view(found).reshape(shape)


def memory_type(label: str) -> "np.dtype[Any]":
    """Return the numpy type of arrays with this element type."""
    if label == "string":
        return np.dtype(object)
    raw = np.dtype(FORMATS[label].raw)
    if raw.name == label or not hasattr(_ML_DTYPES, label):
        return raw
    return cast("np.dtype[Any]", np.dtype(getattr(_ML_DTYPES, label)))


def pack(items: np.ndarray, bits: int) -> np.ndarray:
    """Pack one-byte elements as ONNX does: the first one in the lowest bits of the first byte.

    Args:
        items: Flat uint8, an element a byte; upper bits are left out.
        bits: Bits of an element: 1, 2 or 4.

    Returns:
        Flat uint8, the last byte padded with zeros.
    """
    per_byte = 8 // bits
    padded = np.zeros(round_up(items.size, per_byte), np.uint8)
    padded[: items.size] = items & ((1 << bits) - 1)
    packed = np.zeros(padded.size // per_byte, np.uint8)
    for place in range(per_byte):
        packed |= padded[place::per_byte] << (bits * place)
    return packed


def unpack(packed: np.ndarray, bits: int, count: int, *, signed: bool) -> np.ndarray:
    """Return one byte per element.

    Args:
        packed: Flat uint8, as `pack` makes it.
        bits: Bits of an element.
        count: How many elements there are.
        signed: Whether they are whole numbers with a sign: int8 then; else uint8, the upper bits zero.
    """
    per_byte = 8 // bits
    items = np.empty(packed.size * per_byte, np.uint8)
    for place in range(per_byte):
        items[place::per_byte] = (packed >> (bits * place)) & ((1 << bits) - 1)
    items = items[:count]
    if not signed:
        return items
    whole = (items << (8 - bits)).view(np.int8)
    whole >>= 8 - bits
    return whole
