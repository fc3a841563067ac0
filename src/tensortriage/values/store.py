"""A tensor store is names and arrays: in memory while small, memory-mapped shards on disk when not.

On disk it is a folder of shard files (see `tensortriage_worker.shards`) and an ``index.json`` that is written last, so
a folder without index is not a store and an interrupted writer leaves nothing that looks like one. Writing streams: no
tensor is held. Reading maps: a tensor costs address space until it is looked at, and its shard is unmapped when the
last array out of it is gone.
"""

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from tensortriage.errors import StoreError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values import serial
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_worker import shards
from tensortriage_worker.encoding import encode

SHARD_BYTES = 64 * 1024 * 1024
INDEX_NAME = "index.json"


class TensorStore(Protocol):
    """Named arrays, possibly far more than fit in memory; arrays may be memory-mapped and must not be written to."""

    def names(self) -> Sequence[str]:
        """Return every tensor name, in the order written."""
        ...

    def spec(self, name: str) -> ValueSpec:
        """Return element type and shape without reading the tensor."""
        ...

    def checksum(self, name: str) -> str:
        """Return a digest of a tensor's content, type and shape; equal tensors of any store have equal digests."""
        ...

    def __contains__(self, name: object) -> bool: ...

    def __getitem__(self, name: str) -> np.ndarray: ...


class MemoryStore:
    """A store over arrays that are in memory anyway."""

    def __init__(self, tensors: Mapping[str, np.ndarray]) -> None:
        self._tensors = dict(tensors)
        self._checksums: dict[str, str] = {}

    def names(self) -> Sequence[str]:
        """Return every tensor name, in the order given."""
        return tuple(self._tensors)

    def spec(self, name: str) -> ValueSpec:
        """Return element type and shape; see `TensorStore`."""
        return ValueSpec.of(name, self[name])

    def checksum(self, name: str) -> str:
        """Return the digest of a tensor; see `TensorStore`."""
        if name not in self._checksums:
            array = np.asarray(self[name])
            label = shards.label_of(array)
            self._checksums[name] = _checksum(label, array.shape, zlib.crc32(encode(array, label)[0].data))
        return self._checksums[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            return self._tensors[name]
        except KeyError:
            raise _absent(name, "this store") from None


@frozen_dataclass
class _Item:
    """One line of the index.

    Attributes:
        name: Name of the tensor.
        dtype: Label of its element type.
        shape: Shape of the tensor.
        file: Plain name of a file next to the index.
        crc32: Checksum of its bytes as stored.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str
    crc32: int


@frozen_dataclass
class _Index:
    tensors: tuple[_Item, ...]
    format: str = "tensortriage.store/1"


class ShardWriter:
    """Writes a store, tensor by tensor; use as a context manager.

    One shard per item size is open at a time: that keeps every tensor aligned without holes, in whatever order they
    come. Leaving the block by an exception writes no index, so no store appears.

    Args:
        folder: Created if missing. A store that is already there is replaced.
        shard_bytes: Size at which a shard is closed. It bounds the memory that a reader maps at a time.

    Raises:
        StoreError: When the folder cannot be written (``store-unwritable``).

    Example:
        >>> with ShardWriter(Path("run/tensors")) as writer:  # doctest: +SKIP
        ...     writer.write("logits", np.zeros((2, 3), np.float32))
    """

    def __init__(self, folder: Path, *, shard_bytes: int = SHARD_BYTES) -> None:
        self._folder = Path(folder)
        self._shard_bytes = shard_bytes
        self._open: dict[int, shards.ShardFile] = {}
        self._items: dict[str, _Item] = {}
        self._count = 0
        self._closed = False
        try:
            if self._folder.is_symlink():
                self._folder.unlink()
            self._folder.mkdir(parents=True, exist_ok=True)
            # The index goes first: from here on the old store is no store. Unlinking leaves mapped readers intact.
            (self._folder / INDEX_NAME).unlink(missing_ok=True)
            for stale in self._folder.glob("shard-*.safetensors*"):
                stale.unlink()
        except OSError as error:
            raise _unwritable(self._folder, error) from error

    def write(self, name: str, array: np.ndarray) -> None:
        """Append one tensor of any layout.

        Raises:
            StoreError: When the name was written before (``tensor-duplicate``), the element type has no ONNX
                counterpart (``tensor-unstorable``), or the disk refuses (``store-unwritable``).
        """
        if self._closed:
            raise StoreError(f"store {self._folder} is closed", slug="store-unwritable", cure="open it again")
        if name in self._items:
            raise StoreError(
                f"tensor '{name}' was already written to {self._folder}",
                slug="tensor-duplicate",
                cure="give every tensor its own name",
            )
        array = np.asarray(array)
        try:
            label = shards.label_of(array)
            shard = self._shard_for(shards.item_size(label), name, array)
            checksum = zlib.crc32(shard.add(name, array).data)
        except shards.ShardError as error:
            raise StoreError(
                f"tensor '{name}': {error}", slug="tensor-unstorable", cure="convert it to an ONNX element type first"
            ) from error
        except OSError as error:
            raise _unwritable(self._folder, error) from error
        self._items[name] = _Item(name, label, tuple(array.shape), Path(shard.path).name, checksum)
        if shard.data_bytes >= self._shard_bytes:
            self._close_shard(shards.item_size(label))

    def close(self) -> None:
        """Finish the shards and write the index; calling it twice is harmless.

        Raises:
            StoreError: When the disk refuses (``store-unwritable``).
        """
        if self._closed:
            return
        for size in list(self._open):
            self._close_shard(size)
        serial.dump(_Index(tuple(self._items.values())), self._folder / INDEX_NAME)
        self._closed = True

    def abandon(self) -> None:
        """Discard unfinished data and write no index."""
        for shard in self._open.values():
            shard.discard()
        self._open.clear()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def _shard_for(self, size: int, name: str, array: np.ndarray) -> shards.ShardFile:
        if size in self._open and not self._open[size].fits(name, array.shape):
            self._close_shard(size)
        if size not in self._open:
            path = self._folder / f"shard-{self._count:05d}.safetensors"
            reserve = max(shards.HEADER_RESERVE, shards.header_room(name, array.shape))
            self._open[size] = shards.ShardFile(path, reserve=reserve)
            self._count += 1
        return self._open[size]

    def _close_shard(self, size: int) -> None:
        try:
            self._open.pop(size).close()
        except OSError as error:
            raise _unwritable(self._folder, error) from error


class MappedStore:
    """Reads a finished store.

    Args:
        folder: A folder that a `ShardWriter` closed.

    Raises:
        StoreError: When there is no finished store (``store-missing``) or its index is damaged (``store-damaged``).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        path = self._folder / INDEX_NAME
        if not path.is_file():
            raise StoreError(
                f"{self._folder} holds no finished tensor store",
                slug="store-missing",
                cure="run the command that records it again",
            )
        index = serial.load(path, _Index)
        self._items = {item.name: item for item in index.tensors}
        self._specs = {item.name: _spec(item, path) for item in index.tensors}
        self._readers: dict[str, shards.ShardReader] = {}

    def names(self) -> Sequence[str]:
        """Return every tensor name, in the order written."""
        return tuple(self._items)

    def spec(self, name: str) -> ValueSpec:
        """Return element type and shape; see `TensorStore`.

        Raises:
            StoreError: For a name that is not in the store.
        """
        try:
            return self._specs[name]
        except KeyError:
            raise _absent(name, str(self._folder)) from None

    def checksum(self, name: str) -> str:
        """Return the digest of a tensor, from the index; see `TensorStore`."""
        item = self._items[name]
        return _checksum(item.dtype, item.shape, item.crc32)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __getitem__(self, name: str) -> np.ndarray:
        spec = self.spec(name)
        path = self._folder / self._items[name].file
        try:
            reader = self._reader(path)
            array = reader.tensor(name)
            reader.release()
        except (shards.ShardError, OSError) as error:
            raise _damaged(path, str(error)) from error
        except KeyError:
            raise _damaged(path, f"tensor '{name}' is not in it") from None
        if DType.from_numpy(array.dtype) is not spec.dtype or array.shape != spec.shape:
            raise _damaged(path, f"tensor '{name}' differs from the index")
        return array

    def verify(self) -> None:
        """Read everything and compare it with the checksums; damaged data must not count as an answer.

        Raises:
            StoreError: When something does not fit (``store-damaged``).
        """
        for item in self._items.values():
            path = self._folder / item.file
            try:
                reader = self._reader(path)
                intact = zlib.crc32(reader.stored(item.name).data) == item.crc32
                reader.release()
            except (shards.ShardError, OSError) as error:
                raise _damaged(path, str(error)) from error
            except KeyError:
                raise _damaged(path, f"tensor '{item.name}' is not in it") from None
            if not intact:
                raise _damaged(path, f"the bytes of tensor '{item.name}' are not those that were written")

    def _reader(self, path: Path) -> shards.ShardReader:
        if path.name not in self._readers:
            self._readers[path.name] = shards.ShardReader(path)
        return self._readers[path.name]


def _checksum(label: str, shape: Sequence[int], crc32: int) -> str:
    return f"{label} {list(shape)} {crc32:08x}"


def _spec(item: _Item, path: Path) -> ValueSpec:
    if Path(item.file).name != item.file or "\0" in item.file or any(size < 0 for size in item.shape):
        raise _damaged(path, f"tensor '{item.name}' has a file or shape that no writer writes")
    try:
        return ValueSpec(item.name, DType.parse(item.dtype), item.shape)
    except UsageError as error:
        raise _damaged(path, f"tensor '{item.name}' has the unknown element type '{item.dtype}'") from error


def _absent(name: str, place: str) -> StoreError:
    return StoreError(f"no tensor '{name}' in {place}", slug="tensor-missing", cure="list the names in it first")


def _damaged(path: Path, reason: str) -> StoreError:
    return StoreError(
        f"{path}: {reason}", slug="store-damaged", cure="delete the folder and run the command that records it again"
    )


def _unwritable(folder: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot write tensors to {folder}: {error.strerror or error}",
        slug="store-unwritable",
        cure="free disk space or choose another directory",
    )


def stored(folder: Path) -> TensorStore | None:
    """Return a finished tensor store with matching checksums, or None when the folder has none."""
    try:
        store = MappedStore(folder)
        store.verify()
    except StoreError:
        return None
    return store
