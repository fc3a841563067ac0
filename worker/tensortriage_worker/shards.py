"""Tensors on disk as plain bytes behind a small JSON header, so that reading one back is a memory mapping.

A shard is a file in the safetensors format (https://huggingface.co/docs/safetensors, "Format"): eight bytes of
little-endian header length, a JSON header, the data without holes. Any safetensors tool can read it. Where the stored
element type and shape are not the true ones (see `tensortriage_worker.encoding`), the ``__metadata__`` has them.

The safetensors package is not used: it writes Fortran-ordered and strided arrays in the wrong order (its issue 825)
and cannot read its own float8 tensors. Here every array is made C-contiguous and little-endian first, and a shard's
arrays are ordered by item size so that each one is aligned.
"""

import json
import math
import mmap
import os
import stat
import uuid
import weakref
from types import TracebackType
from typing import IO, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Type

import numpy as np

from tensortriage_worker.encoding import (
    FORMATS,
    LABEL_OF_TAG,
    TAG_ITEMSIZE,
    ShardError,
    decode,
    encode,
    item_size,
    known_label,
    label_of,
    round_up,
)

__all__ = [
    "HEADER_RESERVE",
    "METADATA_KEY",
    "ShardError",
    "ShardFile",
    "ShardReader",
    "header_room",
    "item_size",
    "label_of",
    "read_shard",
    "write_shard",
]

METADATA_KEY = "tensortriage.logical"
HEADER_RESERVE = 64 * 1024
_MAX_HEADER_BYTES = 100 * 1000 * 1000  # The limit of the safetensors package.
_ALIGNMENT = 64


class _Entry(NamedTuple):
    """One tensor of a shard: its true element type and shape, and the place of its bytes, relative to the data."""

    label: str
    shape: Tuple[int, ...]
    begin: int
    end: int


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
        for name in sorted(arrays, key=lambda name: -item_size(known_label(known[name]))):
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
        self._start = round_up(8 + self._room, _ALIGNMENT)
        self._header: Dict[str, Any] = {}
        self._logical: Dict[str, List[Any]] = {}
        self._partial = "{}.{}.partial".format(self.path, uuid.uuid4().hex)
        handle = open(self._partial, "xb", buffering=0)  # noqa: SIM115 - open until close() or discard()
        self._file: Optional[IO[bytes]] = handle
        self._file.seek(self._start)

    def fits(self, name: str, shape: Tuple[int, ...]) -> bool:
        """Return whether the header has room for one more tensor."""
        return header_room(name, shape) <= self._room - 128

    def add(self, name: str, array: np.ndarray, *, label: str = "") -> np.ndarray:
        """Append one tensor and return its bytes as stored; see `write_shard` for ``label`` and the errors.

        Raises:
            ShardError: For a name that is reserved or taken, a full or closed shard, an element type that does not fit
                the array, or a place in the file that its items could not be read from.
        """
        if name in self._header or name == "__metadata__":
            raise ShardError("tensor name {!r} is reserved or already in {}".format(name, self.path))
        if not self.fits(name, array.shape) or self._file is None:
            raise ShardError("shard {} is full or closed".format(self.path))
        label = known_label(label or label_of(array))
        data, stored_shape = encode(array, label)
        form = FORMATS[label]
        if self.data_bytes % TAG_ITEMSIZE[form.tag]:
            raise ShardError("tensor {!r} would be misaligned in {}".format(name, self.path))
        begin = self.data_bytes
        _write_all(self._file, data)
        self.data_bytes += data.nbytes
        self._room -= header_room(name, array.shape)
        self._header[name] = {"dtype": form.tag, "shape": stored_shape, "data_offsets": [begin, self.data_bytes]}
        if LABEL_OF_TAG.get(form.tag) != label:
            self._logical[name] = [label, list(array.shape)]
        return data

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
        with _opened(self.path) as file:
            self._identity = _identity(file)
            self._entries, self._start = _read_header(file, self._identity[0], self.path)
            mapping = mmap.mmap(file.fileno(), self._identity[0], access=mmap.ACCESS_READ)
        self._mapping: Optional[mmap.mmap] = mapping
        self._shared = weakref.ref(mapping)
        self.labels = {name: entry.label for name, entry in self._entries.items()}
        self.shapes = {name: entry.shape for name, entry in self._entries.items()}

    def tensor(self, name: str) -> np.ndarray:
        """Return one tensor, read-only; packed types and strings are decoded into memory, all others are mapped.

        Raises:
            KeyError: When there is none of this name.
            ShardError: When its bytes do not fit its type.
        """
        entry = self._entries[name]
        try:
            array = decode(self.stored(name), entry.label, entry.shape)
        except (ValueError, RecursionError) as error:
            raise ShardError("tensor {!r} of {} is damaged: {}".format(name, self.path, error)) from error
        array.flags.writeable = False
        return array

    def stored(self, name: str) -> np.ndarray:
        """Return the bytes of one tensor as they are stored, mapped; errors as `tensor`."""
        entry = self._entries[name]
        return np.frombuffer(self._map(), np.uint8)[self._start + entry.begin : self._start + entry.end]

    def release(self) -> None:
        """Leave the mapping to the arrays out of it: when the last one is gone, so is its memory.

        `tensor` may still be called, and maps the file anew if need be; then it raises OSError when the file is gone,
        `ShardError` when it was replaced.
        """
        self._mapping = None

    def _map(self) -> mmap.mmap:
        mapping = self._mapping or self._shared()
        if mapping is None:
            with _opened(self.path) as file:
                if _identity(file) != self._identity:
                    raise ShardError("{} was replaced after it was opened".format(self.path))
                mapping = mmap.mmap(file.fileno(), self._identity[0], access=mmap.ACCESS_READ)
            self._shared = weakref.ref(mapping)
        return mapping


def _opened(path: str) -> IO[bytes]:
    """Open a regular file; a FIFO is not waited for, and a device is none."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ShardError("{} is not a regular file".format(path))
    return os.fdopen(handle, "rb")


def _identity(file: IO[bytes]) -> Tuple[int, int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns, status.st_ino


def _write_all(file: IO[bytes], data: np.ndarray) -> None:
    # One write call moves at most 2 GiB on Linux, so a raw file needs the loop.
    while data.size:
        data = data[file.write(data.data) :]


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
    if tag not in TAG_ITEMSIZE:
        raise ValueError("unknown element type {!r}".format(tag))
    if end - begin != math.prod(shape) * TAG_ITEMSIZE[tag]:
        raise ValueError("shape and size disagree")
    return tag, tuple(shape), begin, end


def _entry(span: Tuple[str, Tuple[int, ...], int, int], logical: Any) -> _Entry:
    """Combine a checked header entry with its true element type and shape, where those differ."""
    tag, stored_shape, begin, end = span
    if logical is None:
        return _Entry(LABEL_OF_TAG[tag], stored_shape, begin, end)
    label, shape = logical
    if FORMATS[known_label(label)].tag != tag or not all(_is_size(number) for number in shape):
        raise ValueError("true and stored element type disagree")
    count, bits = math.prod(shape), FORMATS[label].packed_bits
    expected = {"string": end - begin, "complex128": 16 * count}.get(label, round_up(count * bits, 8) // 8 or count)
    if end - begin != expected:
        raise ValueError("true shape and size disagree")
    return _Entry(label, tuple(shape), begin, end)


def _is_size(number: Any) -> bool:
    return type(number) is int and 0 <= number < 2**62
