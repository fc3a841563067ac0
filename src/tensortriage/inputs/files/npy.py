"""Reading .npy and .npz without trust: no pickles, no archive that expands without end, no array that is not all there.

numpy's own reader is safe from pickles but allocates what a header claims, and reads an archive member whole. Here the
claimed size is checked against the bytes that exist before anything is allocated, and a member can be read slice by
slice, so a data set of many samples streams through a few megabytes.
"""

import contextlib
import io
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from tensortriage.errors import DataError
from tensortriage.inputs.files.stored_arrays import ArrayStored, Stored
from tensortriage.values.files import open_regular

MAX_EXPANSION = 200
"""An archive may expand by this factor ..."""
FREE_EXPANSION_BYTES = 1 << 30
"""... or to this many bytes, whichever is more; beyond both it is refused as a decompression bomb."""
_MAPPED_FROM_BYTES = 1 << 20
_ZIP_ERRORS = (
    # What zipfile raises for broken, encrypted and foreign archives: also a seek to a negative offset (OSError,
    # ValueError), and RuntimeError for a password.
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError,
)  # fmt: skip


class Header(NamedTuple):
    """The header of a .npy array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool

    @property
    def nbytes(self) -> int:
        """Bytes of data that must follow."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes], where: str) -> Header:
    """Read the header of a .npy stream and leave the stream at the first byte of data.

    Raises:
        DataError: When it is not a .npy header (``npy-unreadable``), or the array is one of Python objects, which
            cannot be loaded safely (``npy-pickled``).
    """
    try:
        version = npy_format.read_magic(stream)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, is_fortran, dtype = read(stream)
    except (ValueError, SyntaxError, TokenError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise _unreadable(where, f"no .npy header ({error})") from error
    if dtype.hasobject:
        raise DataError(
            f"{where} holds pickled Python objects, which are never loaded",
            slug="npy-pickled",
            cure="save plain arrays: numpy.save(path, array.astype(a number type or 'U'), allow_pickle=False)",
        )
    if dtype.names is not None or dtype.subdtype is not None or any(size < 0 for size in shape):
        raise _unreadable(where, f"structured type or negative shape: {dtype}, {shape}")
    try:
        np.broadcast_to(np.empty((), dtype), shape)
    except ValueError as error:  # too many dimensions, or elements
        raise _unreadable(where, str(error)) from error
    return Header(dtype, tuple(shape), is_fortran)


def read_array(stream: IO[bytes], header: Header, where: str) -> np.ndarray:
    """Read the data that follow a header; the caller has checked that the stream holds `Header.nbytes`.

    Raises:
        DataError: When the stream ends early (``npy-unreadable``).
    """
    array = np.empty(header.shape, header.dtype, order="F" if header.is_fortran else "C")
    flat = array.reshape(-1, order="A")
    _fill(stream, flat, where)
    return array


def _fill(stream: IO[bytes], flat: np.ndarray, where: str) -> None:
    if not flat.nbytes:
        return
    target = flat.view(np.uint8).data
    position = 0
    while position < len(target):
        chunk = stream.read(min(len(target) - position, 1 << 20))
        if not chunk:
            raise _unreadable(where, f"truncated: {position} of {len(target)} bytes of data")
        target[position : position + len(chunk)] = chunk
        position += len(chunk)


def open_npy(path: Path) -> Stored:
    """Open one .npy file; a large one is memory-mapped.

    Raises:
        DataError: When it is not a whole .npy file (``npy-unreadable``) or holds pickles (``npy-pickled``).
    """
    with open_regular(path) as stream:
        header = read_header(stream, str(path))
        start = stream.tell()
        _check_size(header, path.stat().st_size - start, str(path))
        if header.nbytes < _MAPPED_FROM_BYTES:
            return ArrayStored(read_array(stream, header, str(path)))
    shape = header.shape[::-1] if header.is_fortran else header.shape
    mapped: np.ndarray = np.memmap(path, header.dtype, "r", offset=start, shape=shape)
    return ArrayStored(mapped.T if header.is_fortran else mapped)


def open_npz(file: Path | io.BytesIO, where: str) -> dict[str, Stored]:
    """Open a .npz archive; arrays are read on demand.

    Args:
        file: The archive's path or its bytes.
        where: Its name in messages.

    Returns:
        Array name (without ``.npy``) to stored array, in the order of the archive.

    Raises:
        DataError: When it is no .npz archive (``npz-unreadable``), a member is not a whole array
            (``npy-unreadable``, ``npy-pickled``), or it expands without measure (``npz-expands-too-much``).
    """
    size = file.stat().st_size if isinstance(file, Path) else len(file.getbuffer())
    with _translated(where):
        archive = zipfile.ZipFile(file)
        members: dict[str, Stored] = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name == info.filename or name in members:
                raise _not_npz(where, f"it holds '{info.filename}'" + (" twice" if name in members else ""))
            members[name] = NpzMember(archive, info, where)
        expanded = sum(info.file_size for info in archive.infolist())
        if expanded > max(FREE_EXPANSION_BYTES, MAX_EXPANSION * size):
            raise DataError(
                f"{where} would expand from {size} to {expanded} bytes",
                slug="npz-expands-too-much",
                cure="if that is intended, save it uncompressed with numpy.savez",
            )
        return members


class NpzMember:
    """One array of an archive, checked against the size that the archive's directory gives it."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> None:
        self._archive = archive
        self._info = info
        self._archive_where = where
        self._where = f"{where}: '{info.filename.removesuffix('.npy')}'"
        with self._open() as (_, header):
            self._header = header

    @property
    def shape(self) -> tuple[int, ...]:
        """See `Stored`."""
        return self._header.shape

    def load(self) -> np.ndarray:
        """See `Stored`."""
        with self._open() as (stream, header):
            array = read_array(stream, header, self._where)
            stream.read(1)  # Reaching the end makes zipfile compare the checksum.
            return array

    def rows(self) -> Iterator[np.ndarray]:
        """See `Stored`; an array in Fortran order has to be read whole."""
        if self._header.is_fortran:
            yield from self.load()
            return
        with self._open() as (stream, header):
            for _ in range(header.shape[0]):
                yield read_array(stream, header._replace(shape=header.shape[1:]), self._where)
            stream.read(1)

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[IO[bytes], Header]]:
        with _translated(self._archive_where), self._archive.open(self._info) as stream:
            header = read_header(stream, self._where)
            _check_size(header, self._info.file_size - stream.tell(), self._where)
            yield stream, header


@contextlib.contextmanager
def _translated(where: str) -> Iterator[None]:
    """Translate zipfile's exceptions for broken, encrypted and foreign archives."""
    try:
        yield
    except _ZIP_ERRORS as error:
        raise _not_npz(where, str(error)) from error


def _check_size(header: Header, available: int, where: str) -> None:
    if header.nbytes != available:
        raise _unreadable(where, f"its header claims {header.nbytes} bytes of data, there are {available}")


def _unreadable(where: str, reason: str) -> DataError:
    return DataError(
        f"{where} is not a whole .npy array: {reason}", slug="npy-unreadable", cure="save it again with numpy.save"
    )


def _not_npz(where: str, reason: str) -> DataError:
    return DataError(
        f"{where} is not a .npz archive of arrays: {reason}",
        slug="npz-unreadable",
        cure="save it with numpy.savez(path, NAME=array, ...), named after the model's inputs",
    )
