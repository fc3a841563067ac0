"""The check cache: every question ever put to an engine in a case, with its answer, keyed by content.

A key is a digest of everything the answer depends on (model, feed, engine with version and options, question), so a
rerun finds every answer, whatever its order, and a change of any ingredient makes a new question. SQLite commits each
answer before the next question, so a kill loses at most the question in flight.
"""

import contextlib
import hashlib
import json
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tensortriage.errors import StoreError
from tensortriage.values.serial import from_json, to_json

T = TypeVar("T")


def digest(*parts: object) -> str:
    """Return a short content key of JSON-able parts (dict order does not matter)."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _checksum(key: str, question: object, answer: object) -> int:
    return zlib.crc32(f"{key}\0{question}\0{answer}".encode(errors="surrogatepass"))


class CheckCache:
    """Answers on disk by content key.

    Args:
        path: The SQLite file, created when missing.
        fresh: Whether to ignore answers that were stored before.
        before: Called before an answer is stored.

    Raises:
        StoreError: When the file is not a check cache, is damaged, or cannot be opened or written; later as well.
    """

    def __init__(self, path: Path, *, fresh: bool = False, before: Callable[[], None] = lambda: None) -> None:
        self.path = path
        self._before = before
        self._own: set[str] | None = set() if fresh else None
        self._in_turn = threading.RLock()  # one connection may not be used by two threads at once
        with self._translated(), contextlib.ExitStack() as failing:
            self._db = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
            failing.callback(self._db.close)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS checks (key TEXT PRIMARY KEY, question TEXT NOT NULL, answer TEXT NOT NULL,"
                " seconds REAL NOT NULL, created REAL NOT NULL, crc32 INTEGER NOT NULL)"
            )
            self._db.execute("SELECT key, question, answer, seconds, created, crc32 FROM checks LIMIT 1")
            failing.pop_all()

    def get(self, key: str, kind: type[T]) -> T | None:
        """Return the stored answer as ``kind``; None when unknown, damaged, or written by another version."""
        if self._own is not None and key not in self._own:
            return None
        with self._translated():
            row = self._db.execute("SELECT question, answer, crc32 FROM checks WHERE key = ?", (key,)).fetchone()
        if row is None or _checksum(key, row[0], row[1]) != row[2]:
            return None
        try:
            return from_json(row[1], kind)
        except StoreError:
            return None

    def put(self, key: str, question: str, answer: Any, *, seconds: float) -> None:
        """Store an answer.

        Args:
            key: Digest of all that the answer depends on.
            question: The question in words, for people who look into the file.
            answer: A dataclass or JSON-able value.
            seconds: How long it took.
        """
        self._before()
        if self._own is not None:
            self._own.add(key)
        # A file of any bytes may be named, whose lone surrogates become escapes as in JSON.
        question, text = (
            column.encode(errors="backslashreplace").decode() for column in (question, to_json(answer, compact=True))
        )
        row = (key, question, text, seconds, time.time(), _checksum(key, question, text))
        with self._translated():
            self._db.execute("INSERT OR REPLACE INTO checks VALUES (?, ?, ?, ?, ?, ?)", row)

    def __len__(self) -> int:
        with self._translated():
            return int(self._db.execute("SELECT COUNT(*) FROM checks").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Let one thread in, and turn SQLite's errors about a damaged file or a full disk into named errors."""
        try:
            with self._in_turn:
                yield
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path} is not a usable check cache: {error}",
                slug="check-cache-unusable",
                cure="free disk space, remove the file, or give another --case directory",
            ) from error
