"""Weights that stay in their file until their values are needed.

A `MappedTensor` knows where its bytes are. Reading maps the file into memory, so that the system can drop the pages
again; copying to another file never passes through this process's memory at all where the system can do it. The map
lives as long as an array on it: an open map holds a file descriptor, and models with thousands of weight files exist.

onnx_ir's own ExternalTensor is not used: it keeps one map, hence one descriptor, per tensor, and refuses files with
several hard links, which package managers and data version control make routinely.

An `AbsentTensor` is never read: a model loaded without its external data can be cut, sorted and looked into, and what
is saved refers to the same bytes of the same files as before.
"""

import errno
import hashlib
import mmap
import os
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.ir.display_names import quoted

_CHUNK = 1 << 20
_SHA256, _BYTES = "tensortriage.sha256", "tensortriage.bytes"
_NO_KERNEL_COPY = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV, errno.EBADF}


class WeightFile:
    """A file that tensors point into, remembered as it was when the model was loaded.

    Args:
        path: The file.
        is_model: Whether it is a model file, with the tensors embedded in it.
    """

    def __init__(self, path: Path, *, is_model: bool = False) -> None:
        self.path = path
        self.is_model = is_model
        stat = path.stat()
        self.size = stat.st_size
        self._identity = _identity(stat)
        self._lock = threading.Lock()
        self._map: weakref.ref[mmap.mmap] | None = None
        self._pinned: mmap.mmap | None = None

    def map(self) -> mmap.mmap:
        """Return the file mapped into memory, read-only; every array on it keeps the map alive.

        Raises:
            ModelError: When the file was replaced, changed or removed since the model was loaded.
        """
        with self._lock:
            found = self._map() if self._map is not None else None
            if found is None:
                with self.open() as file:
                    found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                self._map = weakref.ref(found)
            return found

    def open(self) -> BinaryIO:
        """Open the file for reading.

        Raises:
            ModelError: When it is gone, or is another one than it was, as for `map`.
        """
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise self._changed(error.strerror or "unreadable") from None
        if _identity(os.fstat(file.fileno())) != self._identity:
            file.close()
            raise self._changed("changed")
        return file

    def pin(self) -> None:
        """Keep the present contents readable for as long as this object lives, even when the path is replaced."""
        self._pinned = self.map()

    def copy_range(self, offset: int, length: int, target: BinaryIO) -> None:
        """Append bytes of this file to another one, inside the kernel where it can.

        Raises:
            ModelError: When the file is shorter than when the model was loaded, or was changed.
        """
        if self._pinned is not None:
            for start in range(offset, offset + length, _CHUNK):
                target.write(self._pinned[start : min(start + _CHUNK, offset + length)])
            return
        with self.open() as source:
            done = _kernel_copy(source, target, offset, length)
            source.seek(offset + done)
            while done < length:
                chunk = source.read(min(_CHUNK, length - done))
                if not chunk:
                    raise self._changed("truncated")
                target.write(chunk)
                done += len(chunk)

    def _changed(self, how: str) -> ModelError:
        return ModelError(
            f"the weights in {self.path} cannot be read any more: {how} since the model was loaded",
            slug="external-data-changed",
            cure="leave the model's files in place while it is in use, or load it again",
        )


class MappedTensor(ir.LazyTensor):
    """A tensor whose numbers are in a file, at a known place; arrays made from it are read-only maps of the file.

    Args:
        file: The file.
        offset: First byte; the data are little endian, packed as ONNX packs sub-byte types.
        dtype: Element type; anything but STRING.
        shape: Dimensions.
        name: Name of the tensor.
        described: A tensor with the metadata and documentation to save with it; None for none.
    """

    __slots__ = ("file", "offset")

    def __init__(
        self,
        file: WeightFile,
        offset: int,
        *,
        dtype: ir.DataType,
        shape: ir.Shape,
        name: str,
        described: ir.TensorProtocol | None = None,
    ) -> None:
        metadata = dict(described.metadata_props) if described is not None else None
        words = (described.doc_string or None) if described is not None else None
        super().__init__(self._map, dtype, shape, name=name, metadata_props=metadata, doc_string=words)
        self.file = file
        self.offset = offset

    def tofile(self, file: BinaryIO) -> None:
        """Append the raw bytes to a file without holding them in memory."""
        self.file.copy_range(self.offset, self.nbytes, file)

    def unaligned(self) -> np.ndarray:
        """Return the numbers as they lie in the file, read-only; numpy reads them wherever that is, other code may not.

        Weights inside of a model file lie at any byte: `numpy` copies them, of four three, which is not needed where
        they are converted all the same. Types that are packed are refused.
        """
        data = np.frombuffer(self.file.map(), np.uint8, self.nbytes, self.offset)
        return data.view(np.dtype(self.dtype.numpy()).newbyteorder("<")).reshape(self.shape.numpy())

    def _map(self) -> Any:
        if not self.nbytes:
            return ir.Tensor(np.empty(self.shape.numpy(), self.dtype.numpy()), dtype=self.dtype, shape=self.shape)
        data = np.frombuffer(self.file.map(), np.uint8, self.nbytes, self.offset)
        if self.dtype.itemsize < 1:
            return ir.PackedTensor(data, self.dtype, shape=self.shape)
        little = np.dtype(self.dtype.numpy()).newbyteorder("<")
        aligned = data if data.ctypes.data % little.alignment == 0 else data.copy()
        return ir.Tensor(aligned.view(little).reshape(self.shape.numpy()), dtype=self.dtype, shape=self.shape)

    def __repr__(self) -> str:
        return f"MappedTensor<{self.dtype},{self.shape}>({str(self.file.path)!r}, offset={self.offset})"


def leave_in_file(model: ir.Model, path: Path, offsets: Mapping[str, int]) -> None:
    """Point initializers, by name, at their data in the model file."""
    if not offsets:
        return
    file = WeightFile(path, is_model=True)
    for name, offset in offsets.items():
        value = model.graph.initializers[name]
        tensor = value.const_value
        if tensor is not None and not isinstance(tensor, ir.ExternalTensor):
            value.const_value = MappedTensor(
                file,
                offset,
                dtype=tensor.dtype,
                shape=ir.Shape(tensor.shape.numpy(), frozen=True),
                name=name,
                described=tensor,
            )


def content_sha256(tensor: Any) -> str:
    """Return the SHA-256, in hex, of an onnx_ir tensor's raw bytes; streamed, and computed once per tensor."""
    known = tensor.meta.get(_SHA256)
    if known is None:
        sink = _HashSink()
        if tensor.dtype == ir.DataType.STRING:
            for word in tensor.numpy().ravel():
                text = word if isinstance(word, bytes) else str(word).encode()
                sink.write(len(text).to_bytes(8, "little") + text)
        else:
            tensor.tofile(sink)
        known = tensor.meta[_SHA256] = sink.digest.hexdigest()
    return str(known)


def stored_bytes(tensor: Any) -> int:
    """Return how many bytes an onnx_ir tensor's numbers take; computed once per tensor, which pieces of a model share.

    onnx_ir makes the shape of a tensor anew, with an object per dimension, whenever it is asked.
    """
    known = tensor.meta.get(_BYTES)
    if known is None:
        known = tensor.meta[_BYTES] = int(tensor.nbytes)
    return int(known)


class _HashSink:
    """A file that forgets everything but the hash."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return len(data)


def _identity(stat: os.stat_result) -> tuple[int, int, int, int]:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _kernel_copy(source: BinaryIO, target: BinaryIO, offset: int, length: int) -> int:
    """Copy with copy_file_range and return how many bytes it managed; 0 where the system or the target cannot."""
    copy = getattr(os, "copy_file_range", None)
    if copy is None or not hasattr(target, "fileno"):
        return 0
    target.flush()
    start, done = target.tell(), 0
    try:
        while done < length:
            count = copy(source.fileno(), target.fileno(), length - done, offset + done, start + done)
            if not count:
                break
            done += count
    except OSError as error:
        if error.errno not in _NO_KERNEL_COPY:
            raise
    target.seek(start + done)
    return done


class AbsentTensor(ir.ExternalTensor):
    """A tensor that has a type, a shape and a place in a file that is never opened; asking for numbers is an error."""

    @classmethod
    def of(cls, tensor: ir.ExternalTensor) -> "AbsentTensor":
        """Return the tensor as one that is never read."""
        return cls(
            tensor.location,
            tensor.offset,
            tensor.length,
            tensor.dtype,
            shape=tensor.shape,
            name=tensor.name,
            doc_string=tensor.doc_string,
            metadata_props=dict(tensor.metadata_props),
        )

    def numpy(self) -> Any:
        """Raise a ModelError (slug ``weight-ignored``), as everything does that asks for numbers."""
        self._refuse()

    def tobytes(self) -> bytes:
        """Raise; see `numpy`."""
        self._refuse()

    def tofile(self, file: object) -> None:
        """Raise; see `numpy`."""
        self._refuse()

    def __array__(self, dtype: Any = None) -> Any:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ModelError(
            f"the values of {quoted(self.name)} are needed, but external data are ignored",
            slug="weight-ignored",
            cure="leave out --ignore-external-data",
        )


class Hollow(ir.LazyTensor):
    """A tensor that has a type and a shape and no numbers; asking for them is a `ModelError`."""

    def __init__(self, tensor: Any) -> None:
        super().__init__(
            _no_numbers,
            tensor.dtype,
            tensor.shape,
            name=tensor.name,
            doc_string=tensor.doc_string,
            metadata_props=dict(tensor.metadata_props),
        )

    def tobytes(self) -> bytes:
        """Return no bytes."""
        return b""

    def tofile(self, file: object) -> None:
        """Write no bytes."""


def _no_numbers() -> NoReturn:
    raise ModelError(
        "the values of a weight of this model were stripped",
        slug="weight-stripped",
        cure="use the original model",
    )


def lacks_numbers(tensor: Any) -> bool:
    """Return whether a tensor's numbers were stripped or are ignored, so that reading them is an error."""
    return isinstance(tensor, Hollow | AbsentTensor)


def large_initializers(model: ir.Model, *, above_bytes: int) -> dict[str, Any]:
    """Return the tensors of the main graph's initializers beyond a size by name; strings do not count."""
    return {
        name: value.const_value
        for name, value in model.graph.initializers.items()
        if value.const_value is not None
        and not lacks_numbers(value.const_value)
        and value.const_value.dtype != ir.DataType.STRING
        and stored_bytes(value.const_value) > above_bytes
    }


def absent_weights(model: ir.Model) -> bool:
    """Return whether a model was loaded without its external data, judged by its main graph's initializers."""
    return any(isinstance(value.const_value, AbsentTensor) for value in model.graph.initializers.values())
