"""Files of code that users' engines have loaded, as their worker processes report: file by file, with the content.

A script imports modules from its folder, and maps libraries; its answers depend on those as on itself. Only
workers of this machine are listened to: paths of another one mean nothing here.
"""

import json
import os
from pathlib import Path

from tensortriage.values.files import content_digest

LOADED_CODE = "TRIAGE_LOADED_CODE"
"""Environment variable with a file to which loaded code is also reported, for callers of this program as a command."""
REPLACED = "replaced while it was in use"
"""In place of a digest: no file is known to have the content that answered."""

_loaded: dict[str, dict[str, str]] = {}
"""By the file of the engine: path of code to digest."""
_digests: dict[tuple[str, int, int], str] = {}
"""Digests of files, valid while size and time of change stay."""


class CodeLog:
    """The report of one worker.

    Args:
        path: The file that its engine process writes; see `tensortriage_worker.loaded`.
        engine: The file of the engine that it runs.
    """

    def __init__(self, path: Path, engine: str) -> None:
        self._engine = engine
        self._path = path
        self._read = 0
        self._seen: dict[str, tuple[int, int]] = {}

    @property
    def current(self) -> bool:
        """Whether everything that the worker has loaded still equals the disk, so that it may serve once more.

        The engine's own file is no part of it: that is executed again for each session.
        """
        return all(_facts(path) == facts for path, facts in self._seen.items() if path != self._engine)

    def hear(self) -> None:
        """Record the code loaded since."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                whole, newline, _ = file.read().rpartition(b"\n")
        except OSError:  # nothing has been
            return
        self._read += len(whole) + len(newline)
        for line in whole.splitlines():
            try:
                path, size, changed = json.loads(line)
            except ValueError:  # an engine may write anything there
                continue
            self._seen[path] = (size, changed)
            _take_down(self._engine, path, digest_of(path) if _facts(path) == (size, changed) else REPLACED)


def loaded(engine: str) -> dict[str, str]:
    """Return path and digest of the code that the engine of a file has loaded in this process's time."""
    return dict(_loaded.get(engine, {}))


def digest_of(path: str) -> str:
    """Return a digest of a file's content; empty where there is none."""
    facts = _facts(path)
    key = (path, *facts)
    if key not in _digests:
        _digests[key] = content_digest(Path(path))
    return _digests[key]


def code_is_current(log: Path) -> bool:
    """Return whether the code that a command reported to a file (`LOADED_CODE`) equals the disk."""
    try:
        recorded = (
            dict(json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()) if log.exists() else {}
        )
    except (OSError, ValueError, TypeError):
        return False
    return all(digest_of(path) == digest for path, digest in recorded.items())


def _facts(path: str) -> tuple[int, int]:
    try:
        facts = os.stat(path)
    except OSError:
        return -1, 0
    return facts.st_size, facts.st_mtime_ns


def _take_down(engine: str, path: str, digest: str) -> None:
    known = _loaded.setdefault(engine, {})
    if known.get(path) == digest:
        return
    known[path] = digest
    if log := os.environ.get(LOADED_CODE):
        with open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps([path, digest]) + "\n")
