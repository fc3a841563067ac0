"""Handing tensors over the process border: shard files in a shared folder, unlinked as soon as they are mapped.

Both sides use this module. The receiver's arrays are views of the mapping, so nothing is read that nobody looks at, and
the file's blocks (or, on tmpfs, its memory) are freed with the last array. An unlinked file cannot be left behind.
Small shards are copied instead: a mapping holds a file descriptor, and someone may keep the results of a thousand runs.
"""

from __future__ import annotations

import os
import shutil
import uuid
from typing import Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

import numpy as np

from tensortriage_worker.shards import ShardReader, label_of, write_shard

SHARD_BYTES = 256 << 20
MARGIN_BYTES = 16 << 20
COPIED_BYTES = 4 << 20
SPILLED_BYTES = 64 << 20


class Item(NamedTuple):
    """A tensor on its way; ``label`` is its true element type where numpy here has only raw integers for it."""

    name: str
    array: np.ndarray
    label: str = ""


class NoRoom(OSError):
    """None of the exchange folders has room for a shard."""

    slug = "exchange-full"
    cure = "free memory in /dev/shm, or set TMPDIR to a folder with room"


def put(folders: Sequence[str], items: Iterable[Item]) -> List[str]:
    """Write tensors to shards of about `SHARD_BYTES` and return their paths; no more than one shard's arrays are held.

    Raises:
        NoRoom: When every folder is full; nothing of these tensors remains there.
    """
    paths = []  # type: List[str]
    try:
        for group in _groups(items):
            paths.append(_put_shard(folders, group))
    except BaseException:
        for path in paths:
            os.unlink(path)
        raise
    return paths


class Spill:
    """Takes tensors one by one and writes them to shards as soon as they are many, so that few are held.

    Args:
        folders: Exchange folders, best first.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders
        self._paths: List[str] = []
        self._waiting: List[Item] = []
        self._size = 0

    def add(self, item: Item) -> None:
        """Take a tensor.

        Raises:
            NoRoom: When every folder is full.
        """
        self._waiting.append(item)
        self._size += item.array.nbytes
        if self._size >= SPILLED_BYTES:
            self._flush()

    def close(self) -> List[str]:
        """Write pending tensors and return the paths of all shards."""
        self._flush()
        return self._paths

    def _flush(self) -> None:
        self._paths += put(self._folders, self._waiting)
        self._waiting, self._size = [], 0


def take(paths: Iterable[str]) -> Iterator[Item]:
    """Yield the tensors of shards, read-only, in file order; the files are gone afterwards."""
    for path in paths:
        small = os.path.getsize(path) <= COPIED_BYTES
        reader = ShardReader(path)
        os.unlink(path)
        for name, label in reader.labels.items():
            array = reader.tensor(name)
            if small:
                array = array.copy()
                array.flags.writeable = False
            yield Item(name, array, label)


def _groups(items: Iterable[Item]) -> Iterator[Dict[str, Item]]:
    group = {}  # type: Dict[str, Item]
    size = 0
    for item in items:
        if group and size + item.array.nbytes > SHARD_BYTES:
            yield group
            group, size = {}, 0
        group[item.name] = item
        size += item.array.nbytes
    if group:
        yield group


def _put_shard(folders: Sequence[str], group: Mapping[str, Item]) -> str:
    arrays = {name: item.array for name, item in group.items()}
    labels = {name: item.label or label_of(item.array) for name, item in group.items()}
    needed = sum(array.nbytes for array in arrays.values()) + MARGIN_BYTES
    refusals = []  # type: List[str]
    for folder in folders:
        path = os.path.join(folder, uuid.uuid4().hex + ".safetensors")
        try:
            free = shutil.disk_usage(folder).free
            if free < needed:
                refusals.append("{} has {} MB free".format(folder, free >> 20))
                continue
            write_shard(path, arrays, labels)
        except OSError as error:
            refusals.append("{}: {}".format(folder, error.strerror))
            continue
        return path
    raise NoRoom("{} MB of tensors do not fit: {}".format(needed >> 20, "; ".join(refusals)))
