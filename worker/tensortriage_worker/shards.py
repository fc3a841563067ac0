"""Tensors on disk as plain bytes behind a small JSON header, so that reading one back is a memory mapping.

A shard is a file in the safetensors format (https://huggingface.co/docs/safetensors, "Format"): eight bytes of
little-endian header length, a JSON header, the data without holes. Any safetensors tool can read it. What that format
cannot say is stored as bytes it can hold, and the header's ``__metadata__`` keeps the true element type and shape:

* sub-byte types are packed as ONNX packs them (first element in the lowest bits, flat, zero padded);
* complex128 is stored as float64 with one more axis (real, imaginary); float8 *fnuz types as uint8;
* strings as one UTF-8 JSON array.

The safetensors package is not used: it writes Fortran-ordered and strided arrays in the wrong order (its issue 825)
and cannot read its own float8 tensors. Here every array is made C-contiguous and little-endian first, and a shard's
arrays are ordered by item size so that each one is aligned.

``ml_dtypes`` is optional. Without it an array of a type that numpy lacks comes back as raw integers of the same width
(bfloat16 as uint16, float8 as uint8, int4 as int8, the other sub-byte types as int8 or uint8, one element each); its
label says what they mean, and `write_shard` takes such labels too.
"""

import json
import math
import mmap
import os
import weakref
from types import TracebackType
from typing import IO, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Type, cast

import numpy as np


def _optional_ml_dtypes() -> Any:
    try:
        import ml_dtypes
    except ImportError:  # The worker promises to run with numpy alone.
        return None
    return ml_dtypes


_ML_DTYPES = _optional_ml_dtypes()
METADATA_KEY = "tensortriage.logical"
HEADER_RESERVE = 64 * 1024
_MAX_HEADER_BYTES = 100 * 1000 * 1000  # The limit of the safetensors package.
_ALIGNMENT = 64


class ShardError(ValueError):
    """A shard file is not what it should be, or a tensor cannot be stored."""


class _Format(NamedTuple):
    """How one element type is stored: safetensors tag, numpy type of the stored bytes, bits per element if packed."""

    tag: str
    raw: str
    packed_bits: int = 0


# Keys are the labels used throughout TensorTriage (tensortriage.values.dtype.DType.label).
_FORMATS = {
    "bool": _Format("BOOL", "|b1"),
    "uint8": _Format("U8", "|u1"),
    "int8": _Format("I8", "|i1"),
    "uint16": _Format("U16", "<u2"),
    "int16": _Format("I16", "<i2"),
    "uint32": _Format("U32", "<u4"),
    "int32": _Format("I32", "<i4"),
    "uint64": _Format("U64", "<u8"),
    "int64": _Format("I64", "<i8"),
    "float16": _Format("F16", "<f2"),
    "float32": _Format("F32", "<f4"),
    "float64": _Format("F64", "<f8"),
    "complex64": _Format("C64", "<c8"),
    "complex128": _Format("F64", "<c16"),
    "bfloat16": _Format("BF16", "<u2"),
    "float8_e4m3fn": _Format("F8_E4M3", "|u1"),
    "float8_e5m2": _Format("F8_E5M2", "|u1"),
    "float8_e8m0fnu": _Format("F8_E8M0", "|u1"),
    "float8_e4m3fnuz": _Format("U8", "|u1"),
    "float8_e5m2fnuz": _Format("U8", "|u1"),
    "uint4": _Format("U8", "|u1", 4),
    "int4": _Format("U8", "|i1", 4),
    "float4_e2m1fn": _Format("U8", "|u1", 4),
    "uint2": _Format("U8", "|u1", 2),
    "int2": _Format("U8", "|i1", 2),
    "string": _Format("U8", "|u1"),
}
_TAG_ITEMSIZE = {
    "BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "U32": 4, "I32": 4, "U64": 8, "I64": 8, "F16": 2, "F32": 4,
    "F64": 8, "C64": 8, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
}  # fmt: skip
_LABEL_OF_TAG = {
    form.tag: label
    for label, form in reversed(list(_FORMATS.items()))
    if not form.packed_bits and label not in ("string", "complex128", "float8_e4m3fnuz", "float8_e5m2fnuz")
}


class _Entry(NamedTuple):
    """One tensor of a shard: its true element type and shape, and where its bytes are, relative to the data."""

    label: str
    shape: Tuple[int, ...]
    begin: int
    end: int


def label_of(array: np.ndarray) -> str:
    """Return the label of an array's element type, e.g. ``float32``, ``bfloat16``, ``int4``, ``string``.

    Raises:
        ShardError: For a numpy type that no ONNX tensor has (datetime, structured, longdouble).
    """
    if array.dtype.kind in "USO":
        return "string"
    label = array.dtype.newbyteorder("=").name
    if label not in _FORMATS:
        raise ShardError("arrays of numpy type {} cannot be stored".format(array.dtype))
    return label


def item_size(label: str) -> int:
    """Return the alignment in bytes that stored data of this element type need."""
    return _TAG_ITEMSIZE[_FORMATS[label].tag]


def write_shard(
    path: "os.PathLike[str] | str", tensors: Mapping[str, np.ndarray], labels: Optional[Mapping[str, str]] = None
) -> None:
    """Write one shard file; it appears under its name only when complete.

    Args:
        path: File to write; an existing one is replaced.
        tensors: Arrays of any layout, by name.
        labels: True element types of arrays that are given as raw integers because ``ml_dtypes`` is missing here.

    Raises:
        ShardError: For an element type that cannot be stored, or a label that does not fit its array.
        OSError: When the file cannot be written.
    """
    given = dict(labels or {})
    arrays = {name: np.asarray(array) for name, array in tensors.items()}
    known = {name: given.get(name) or label_of(array) for name, array in arrays.items()}
    reserve = sum(header_room(name, array.shape) for name, array in arrays.items())
    with ShardFile(path, reserve=reserve) as shard:
        for name in sorted(arrays, key=lambda name: -item_size(_known(known[name]))):
            shard.add(name, arrays[name], label=known[name])


def read_shard(path: "os.PathLike[str] | str") -> Dict[str, np.ndarray]:
    """Return every tensor of a shard file, memory-mapped and read-only where its type allows, in file order.

    Raises:
        ShardError: When the file is truncated, hostile or not a shard.
        OSError: When it cannot be opened.
    """
    reader = ShardReader(path)
    return {name: reader.tensor(name) for name in reader.labels}


def header_room(name: str, shape: Tuple[int, ...]) -> int:
    """Return an upper bound of the bytes that one tensor adds to a header."""
    return 4 * len(json.dumps(name)) + 48 * len(shape) + 200


class ShardFile:
    """A shard being written, one tensor at a time, without holding any.

    The header comes first in the file but is known last, so room for it is reserved and the rest filled with spaces,
    which the format allows. Tensors must come in an order that keeps them aligned: item sizes never growing.
    """

    def __init__(self, path: "os.PathLike[str] | str", *, reserve: int = HEADER_RESERVE) -> None:
        self.path = os.fspath(path)
        self.data_bytes = 0
        self._room = reserve + 128
        self._start = _round_up(8 + self._room, _ALIGNMENT)
        self._header = {}  # type: Dict[str, Any]
        self._logical = {}  # type: Dict[str, List[Any]]
        self._partial = "{}.{}.partial".format(self.path, os.getpid())
        handle = open(self._partial, "wb", buffering=0)  # noqa: SIM115 - open until close() or discard()
        self._file = handle  # type: Optional[IO[bytes]]
        self._file.seek(self._start)

    def fits(self, name: str, shape: Tuple[int, ...]) -> bool:
        """Say whether the header has room for one more tensor."""
        return header_room(name, shape) <= self._room - 128

    def add(self, name: str, array: np.ndarray, *, label: str = "") -> None:
        """Append one tensor; see `write_shard` for ``label`` and the errors."""
        if name in self._header or name == "__metadata__":
            raise ShardError("tensor name {!r} is reserved or already in {}".format(name, self.path))
        if not self.fits(name, array.shape) or self._file is None:
            raise ShardError("shard {} is full or closed".format(self.path))
        label = _known(label or label_of(array))
        data, stored_shape = _encode(array, label)
        form = _FORMATS[label]
        if self.data_bytes % _TAG_ITEMSIZE[form.tag]:
            raise ShardError("tensor {!r} would be misaligned in {}".format(name, self.path))
        begin = self.data_bytes
        _write_all(self._file, data)
        self.data_bytes += data.nbytes
        self._room -= header_room(name, array.shape)
        self._header[name] = {"dtype": form.tag, "shape": stored_shape, "data_offsets": [begin, self.data_bytes]}
        if _LABEL_OF_TAG.get(form.tag) != label:
            self._logical[name] = [label, list(array.shape)]

    def close(self) -> None:
        """Write the header and let the file appear under its name."""
        if self._file is None:
            return
        metadata = {METADATA_KEY: json.dumps(self._logical)} if self._logical else {}
        header = dict({"__metadata__": metadata} if metadata else {}, **self._header)
        text = json.dumps(header, separators=(",", ":")).encode("ascii")
        length = self._start - 8
        self._file.seek(0)
        _write_all(self._file, np.frombuffer(length.to_bytes(8, "little") + text.ljust(length), np.uint8))
        self._file.close()
        self._file = None
        os.replace(self._partial, self.path)

    def discard(self) -> None:
        """Forget the file; nothing appears under its name."""
        if self._file is not None:
            self._file.close()
            self._file = None
            os.unlink(self._partial)

    def __enter__(self) -> "ShardFile":  # noqa: PYI034 - typing.Self is newer than Python 3.8
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


class ShardReader:
    """One shard file, checked and memory-mapped; its arrays keep the mapping alive, nothing else needs closing.

    Attributes:
        labels: True element type of every tensor, by name, in file order.
        shapes: True shape of every tensor.

    Raises:
        ShardError: When the file is truncated, hostile or not a shard.
        OSError: When it cannot be opened.
    """

    def __init__(self, path: "os.PathLike[str] | str") -> None:
        self.path = os.fspath(path)
        with open(self.path, "rb") as file:
            self._identity = _identity(file)
            self._entries, self._start = _read_header(file, self._identity[0], self.path)
            mapping = mmap.mmap(file.fileno(), self._identity[0], access=mmap.ACCESS_READ)
        self._mapping = mapping  # type: Optional[mmap.mmap]
        self._shared = weakref.ref(mapping)
        self.labels = {name: entry.label for name, entry in self._entries.items()}
        self.shapes = {name: entry.shape for name, entry in self._entries.items()}

    def tensor(self, name: str) -> np.ndarray:
        """Return one tensor, read-only; packed types and strings are decoded into memory, all others are mapped.

        Raises:
            KeyError: When there is none of this name.
            ShardError: When its bytes are not what its type promises.
        """
        entry = self._entries[name]
        data = np.frombuffer(self._map(), np.uint8)[self._start + entry.begin : self._start + entry.end]
        try:
            array = _decode(data, entry.label, entry.shape)
        except (ValueError, RecursionError) as error:
            raise ShardError("tensor {!r} of {} is damaged: {}".format(name, self.path, error)) from error
        array.flags.writeable = False
        return array

    def release(self) -> None:
        """Leave the mapping to the arrays out of it: when the last one is gone, so is its memory.

        `tensor` may still be called, and maps the file anew if need be; then it raises OSError when the file is gone,
        `ShardError` when it was replaced.
        """
        self._mapping = None

    def _map(self) -> mmap.mmap:
        mapping = self._mapping or self._shared()
        if mapping is None:
            with open(self.path, "rb") as file:
                if _identity(file) != self._identity:
                    raise ShardError("{} was replaced after it was opened".format(self.path))
                mapping = mmap.mmap(file.fileno(), self._identity[0], access=mmap.ACCESS_READ)
            self._shared = weakref.ref(mapping)
        return mapping


def _identity(file: IO[bytes]) -> Tuple[int, int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns, status.st_ino


def _known(label: str) -> str:
    if label not in _FORMATS:
        raise ShardError("unknown element type {!r}".format(label))
    return label


def _round_up(size: int, step: int) -> int:
    return -(-size // step) * step


def _write_all(file: IO[bytes], data: np.ndarray) -> None:
    # One write call moves at most 2 GiB on Linux, so a raw file needs the loop.
    while data.size:
        data = data[file.write(data.data) :]


def _encode(array: np.ndarray, label: str) -> Tuple[np.ndarray, List[int]]:
    """Return the bytes to store (flat uint8) and the shape they have in the file."""
    form = _FORMATS[label]
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
        flat = _pack(flat, form.packed_bits)
        return flat, [flat.nbytes]
    shape = list(array.shape)
    return flat, [*shape, 2] if label == "complex128" else shape


def _text(item: Any) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)


def _decode(data: np.ndarray, label: str, shape: Tuple[int, ...]) -> np.ndarray:
    form = _FORMATS[label]
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
    memory_type = _memory_type(label)
    if form.packed_bits:
        data = _unpack(data, form.packed_bits)[: math.prod(shape)]
        if memory_type == np.int8:  # ml_dtypes leaves the upper bits zero; a plain int8 needs its sign there.
            shift = 8 - form.packed_bits
            data <<= shift
            data.view(np.int8)[:] >>= shift
    return data.view(memory_type).reshape(shape)


def _memory_type(label: str) -> "np.dtype[Any]":
    """Return the numpy type in which arrays of this element type are handed out."""
    raw = np.dtype(_FORMATS[label].raw)
    if raw.name == label or not hasattr(_ML_DTYPES, label):
        return raw
    return cast("np.dtype[Any]", np.dtype(getattr(_ML_DTYPES, label)))


def _pack(items: np.ndarray, bits: int) -> np.ndarray:
    """Pack one-byte elements as ONNX does: the first one in the lowest bits of the first byte."""
    per_byte = 8 // bits
    padded = np.zeros(_round_up(items.size, per_byte), np.uint8)
    padded[: items.size] = items & ((1 << bits) - 1)
    packed = np.zeros(padded.size // per_byte, np.uint8)
    for place in range(per_byte):
        packed |= padded[place::per_byte] << (bits * place)
    return packed


def _unpack(packed: np.ndarray, bits: int) -> np.ndarray:
    """Return one byte per element, its upper bits zero."""
    per_byte = 8 // bits
    items = np.empty(packed.size * per_byte, np.uint8)
    for place in range(per_byte):
        items[place::per_byte] = (packed >> (bits * place)) & ((1 << bits) - 1)
    return items


def _read_header(file: IO[bytes], size: int, path: str) -> Tuple[Dict[str, _Entry], int]:
    """Read and check the header; return the entries and where the data start."""
    head = file.read(8)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or length > min(size - 8, _MAX_HEADER_BYTES):
        raise ShardError("{} is truncated or not a tensor shard: no complete header".format(path))
    try:
        header = json.loads(file.read(length).decode("utf-8"))
        metadata = header.pop("__metadata__", {})
        logical = json.loads(metadata.get(METADATA_KEY, "{}"))
        spans = {name: _span(entry) for name, entry in header.items()}
        entries = {name: _entry(spans[name], logical.get(name)) for name in sorted(spans, key=lambda n: spans[n][2:])}
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ShardError("{} has a damaged header: {}".format(path, error)) from error
    position = 0
    for entry in entries.values():
        if entry.begin != position:
            raise ShardError("{} has a damaged header: tensors overlap or leave a hole".format(path))
        position = entry.end
    if position != size - 8 - length:
        raise ShardError("{} is truncated: {} bytes of data, {} expected".format(path, size - 8 - length, position))
    return entries, 8 + length


def _span(entry: Any) -> Tuple[str, Tuple[int, ...], int, int]:
    """Check one header entry; return its safetensors tag, stored shape and byte range."""
    tag, shape = entry["dtype"], entry["shape"]
    begin, end = entry["data_offsets"]
    if not isinstance(shape, list) or not all(_is_size(number) for number in [*shape, begin, end]):
        raise ValueError("shapes and offsets must be non-negative integers")
    if tag not in _TAG_ITEMSIZE:
        raise ValueError("unknown element type {!r}".format(tag))
    if end - begin != math.prod(shape) * _TAG_ITEMSIZE[tag]:
        raise ValueError("shape and size disagree")
    return tag, tuple(shape), begin, end


def _entry(span: Tuple[str, Tuple[int, ...], int, int], logical: Any) -> _Entry:
    """Combine a checked header entry with its true element type and shape, where those differ."""
    tag, stored_shape, begin, end = span
    if logical is None:
        return _Entry(_LABEL_OF_TAG[tag], stored_shape, begin, end)
    label, shape = logical
    if _FORMATS[_known(label)].tag != tag or not all(_is_size(number) for number in shape):
        raise ValueError("true and stored element type disagree")
    count, bits = math.prod(shape), _FORMATS[label].packed_bits
    expected = {"string": end - begin, "complex128": 16 * count}.get(label, _round_up(count * bits, 8) // 8 or count)
    if end - begin != expected:
        raise ValueError("true shape and size disagree")
    return _Entry(label, tuple(shape), begin, end)


def _is_size(number: Any) -> bool:
    return type(number) is int and 0 <= number < 2**62
