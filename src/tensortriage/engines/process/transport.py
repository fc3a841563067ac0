"""Transport of files and tensors to a worker: a shared folder on this machine, chunks on the wire to another one.

A session hands over a model once and tensors with every run. On this machine that takes no transport at all: a path
for the model, shards in a folder both sides map. On another one the same shards are streamed in chunks through the
connection that exists anyway, so a Jetson behind ssh needs no shared disk and no further port.
"""

import collections
import contextlib
import hashlib
import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from tensortriage.errors import StoreError
from tensortriage_worker import exchange
from tensortriage_worker.exchange import Item
from tensortriage_worker.shards import ShardError
from tensortriage_worker.supervisor import CHUNK_BYTES

CHUNK_SECONDS = 60.0
"""Longest wait for the next chunk from another machine."""


KEPT_FILES = 4
"""Files (models with their weights) that stay on another machine unused, in case they are wanted again."""


class Line(Protocol):
    """The connection to a worker's supervisor."""

    def send(self, message: dict[str, Any] | bytes) -> None:
        """Send one message, or a chunk of a file."""
        ...

    def receive(self, seconds: float) -> Any:
        """Wait for a message (a dict) or a chunk (bytes)."""
        ...


class Transport(Protocol):
    """Moves a model and tensors to a worker, and tensors back."""

    def deliver(self, path: Path) -> str:
        """Return where the worker finds an ONNX file (with its external data); `withdraw` it later."""
        ...

    def deliver_file(self, path: Path) -> str:
        """Return where the worker finds any other file; `withdraw` it later."""
        ...

    def withdraw(self, delivered: str) -> None:
        """Remove the copies that `deliver` made."""
        ...

    def put(self, items: Iterable[Item]) -> list[str]:
        """Hand tensors over and return the names of their shards on the worker's side.

        Raises:
            StoreError: When there is no room for them (``exchange-full``).
        """
        ...

    def discard(self, paths: Iterable[str]) -> None:
        """Remove shards that the worker did not take."""
        ...

    def take(self, paths: Iterable[str]) -> Iterator[Item]:
        """Yield the tensors of shards that the worker wrote."""
        ...

    def close(self) -> None:
        """Release the transport's own resources here."""
        ...


class SharedFolder:
    """The worker is on this machine."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders

    def deliver(self, path: Path) -> str:
        """Return the path: the worker reads the file where it is."""
        return str(path)

    def deliver_file(self, path: Path) -> str:
        """Return the path, likewise."""
        return str(path)

    def withdraw(self, delivered: str) -> None:
        """Do nothing: nothing was copied."""

    def put(self, items: Iterable[Item]) -> list[str]:
        """Write shards into a folder that the worker maps them from; see `Transport`.

        Raises:
            StoreError: When no folder has room for the items.
        """
        try:
            return exchange.put(self._folders, items)
        except exchange.NoRoom as error:
            raise _no_room(str(error)) from error

    def discard(self, paths: Iterable[str]) -> None:
        """Remove leftovers."""
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def take(self, paths: Iterable[str]) -> Iterator[Item]:
        """Map the worker's shards; nothing outside of the folders is touched, whatever the worker sends.

        Raises:
            ShardError: For another place, or a link.
        """
        for path in paths:
            if os.path.dirname(path) not in self._folders or os.path.islink(path):
                raise ShardError(f"{path} is not in the folder for tensors")
            yield from exchange.take([path])

    def close(self) -> None:
        """Do nothing."""


class Wire:
    """The worker is on another machine; a model or file that it has been sent lately is not sent again."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._folder = tempfile.TemporaryDirectory(prefix="triage-wire-", ignore_cleanup_errors=True)
        self._sent: dict[str, str] = {}  # by content, the one used last at the end
        self._used: collections.Counter[str] = collections.Counter()

    def deliver(self, path: Path) -> str:
        """Send an ONNX file with all its weights under a folder of its own."""
        from tensortriage.model.model import Model

        with tempfile.TemporaryDirectory(dir=self._folder.name) as folder:
            saved = Model.load(path).save(Path(folder) / "model.onnx")
            weights = sorted(part for part in saved.parent.iterdir() if part != saved)
            return self._deliver([*weights, saved])

    def deliver_file(self, path: Path) -> str:
        """Send a file under a folder of its own."""
        return self._deliver([path])

    def _deliver(self, parts: Sequence[Path]) -> str:
        """Send files under a folder of their own unless they are there, and return where the last one is."""
        key = _digest(parts)
        place = self._sent.pop(key, None)
        if place is None:
            name = uuid.uuid4().hex
            place = [self._upload(part, f"{name}/{part.name}") for part in parts][-1]
        self._sent[key] = place
        self._used[place] += 1
        return place

    def withdraw(self, delivered: str) -> None:
        """Release a file; beyond `KEPT_FILES` unused ones the oldest are removed, with files that came with them."""
        self._used[delivered] -= 1
        unused = [key for key, place in self._sent.items() if not self._used[place]]
        for key in unused[: max(len(unused) - KEPT_FILES, 0)]:
            self._line.send({"op": "remove", "path": self._sent.pop(key)})

    def put(self, items: Iterable[Item]) -> list[str]:
        """Send shards one by one; see `Transport`.

        Raises:
            StoreError: When the folder here has no room for the items.
        """
        try:
            shards = exchange.put([self._folder.name], items)
        except exchange.NoRoom as error:
            raise _no_room(str(error)) from error
        try:
            return [self._upload(Path(shard), "") for shard in shards]
        finally:
            for shard in shards:
                os.unlink(shard)

    def discard(self, paths: Iterable[str]) -> None:
        """Remove leftovers there."""
        for path in paths:
            self._line.send({"op": "remove", "path": path})

    def take(self, paths: Iterable[str]) -> Iterator[Item]:
        """Fetch shards and map them here."""
        for path in paths:
            yield from exchange.take([self._download(path)])

    def _upload(self, path: Path, name: str) -> str:
        size = path.stat().st_size
        self._line.send({"op": "store", "name": name, "bytes": size})
        answer = self._line.receive(CHUNK_SECONDS)
        if "refused" in answer:
            raise _no_room(f"the worker's machine has {answer['refused']}")
        with open(path, "rb") as file:
            for chunk in iter(lambda: file.read(CHUNK_BYTES), b""):
                self._line.send(chunk)
        self._line.receive(CHUNK_SECONDS)
        stored: str = answer["storing"]
        return stored

    def _download(self, path: str) -> str:
        target = os.path.join(self._folder.name, uuid.uuid4().hex + ".safetensors")
        self._line.send({"op": "fetch", "path": path})
        answer = self._line.receive(CHUNK_SECONDS)
        if not isinstance(answer, dict) or "bytes" not in answer:
            raise ShardError(f"the worker's machine did not send {path}: {answer}")
        missing = answer["bytes"]
        with open(target, "wb") as file:
            while missing:
                chunk = self._line.receive(CHUNK_SECONDS)
                file.write(chunk)
                missing -= len(chunk)
        return target

    def close(self) -> None:
        """Remove the local folder that shards pass through."""
        self._folder.cleanup()


def _digest(parts: Sequence[Path]) -> str:
    """Return an identity of files by name and content."""
    state = hashlib.sha256()
    for part in parts:
        with open(part, "rb") as file:
            state.update(f"{part.name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\0".encode())
    return state.hexdigest()


def _no_room(what: str) -> StoreError:
    return StoreError(what, slug=exchange.NoRoom.slug, cure=exchange.NoRoom.cure)
