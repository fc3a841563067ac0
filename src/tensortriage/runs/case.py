"""A case: the directory that holds everything about one investigation; rerunning in it resumes it.

Nothing outside the directory is written. Contents are keyed by content, so the same directory may serve another target
or more data later without confusion.
"""

import dataclasses
import datetime
import errno
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tensortriage.engines.cpu_features import processor
from tensortriage.errors import StoreError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.check_cache import CheckCache
from tensortriage.runs.identity.engine_code import EngineCode
from tensortriage.values.serial import dump

if TYPE_CHECKING:
    from tensortriage.inputs.feed import Feed
    from tensortriage.model.model import Model

CASE_FORMAT = "tensortriage.case/1"

LOCK, RUNS = ".lock", "runs"
MAX_PATH = 512
"""SQLite's own limit (MAX_PATHNAME in os_unix.c), its suffixes included."""
PATIENCE_SECONDS = 2.0
"""How long another command may take to leave a case; the processes of one that was killed end a moment later."""


@frozen_dataclass
class ModelFacts:
    """The model a case is about.

    Attributes:
        path: As the user named it.
        sha256: Fingerprint of structure and weights.
        nodes: Number of nodes in the main graph.
        parameters: Number of initializer elements.
        opset: Version of the default ONNX domain.
    """

    path: str
    sha256: str
    nodes: int
    parameters: int
    opset: int

    @classmethod
    def of(cls, model: "Model", path: Path) -> Self:
        """Return the facts of a model that was read from a file."""
        return cls(str(path), model.fingerprint, len(model.graph.nodes), model.parameter_count, model.opset)


@frozen_dataclass
class FeedFacts:
    """A feed of a case: its name, ``real`` or ``random``, and the digest of its content."""

    name: str
    origin: str
    sha256: str

    @classmethod
    def of(cls, feed: "Feed") -> Self:
        """Return the facts of a feed."""
        return cls(feed.name, feed.origin.value, feed.digest)


@frozen_dataclass
class CaseFacts:
    """The question of a case and its inputs; the content of ``case.json``."""

    command: str
    model: ModelFacts
    reference: str
    target: str
    feeds: tuple[FeedFacts, ...]
    target_model: ModelFacts | None = None
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    created: str = ""
    format: str = CASE_FORMAT


class Case:
    """An open case directory.

    Args:
        folder: The directory; created when missing. An existing one must be empty or a case.
        fresh: Whether everything is asked again: no answer of an earlier command counts, and engines are built again.
        own: Whether no other command knows the directory, which then needs no lock.

    Raises:
        UsageError: When the directory holds something else, or another command is at work in it; nothing in it is
            touched.
        StoreError: When it cannot be written.
    """

    def __init__(self, folder: Path, *, fresh: bool = False, own: bool = False) -> None:
        self.folder = folder
        try:
            if folder.exists() and not folder.is_dir():
                raise UsageError(f"{folder} is not a directory", slug="case-not-a-directory", cure="give --case DIR")
            known = folder / "checks.sqlite"
            if folder.exists() and not known.exists() and not _is_begun(folder):
                raise UsageError(
                    f"{folder} is not empty and is not a case",
                    slug="case-foreign-directory",
                    cure="give --case an empty or new directory, or an earlier case to resume",
                )
            _refuse_long(known)
            _refuse_links(folder)
            self.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(folder, error) from error
        self._unlock: Callable[[], None] = (lambda: None) if own else _lock(folder)
        self.code = EngineCode(folder, fresh=fresh)
        try:
            self.checks = CheckCache(known, fresh=fresh, before=self.code.note)
        except BaseException:
            self._unlock()
            raise
        shutil.rmtree(self.temporary, ignore_errors=True)
        if fresh:
            shutil.rmtree(self.engines, ignore_errors=True)

    @property
    def runs(self) -> Path:
        """Where recorded tensors live, one folder per content key."""
        return self.folder / RUNS

    @property
    def temporary(self) -> Path:
        """Where model files live while an engine needs them; emptied on open."""
        return self.folder / "tmp"

    @property
    def engines(self) -> Path:
        """The folder of cached builds, by content."""
        return self.folder / "engines"

    def write(self, name: str, content: object) -> None:
        """Write one JSON document of the case, atomically."""
        dump(content, self.folder / name)

    def close(self) -> None:
        """Release the check cache and remove temporary files."""
        self.checks.close()
        shutil.rmtree(self.temporary, ignore_errors=True)
        self._unlock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _refuse_long(database: Path) -> None:
    """Refuse a path that SQLite cannot open.

    Raises:
        UsageError: ``case-path-too-long``.
    """
    length = len(os.fsencode(database.absolute())) + len("-journal")
    if length >= MAX_PATH:
        raise UsageError(
            f"the path of the case {database.parent} is too long: with the files in it {length} bytes; "
            f"{MAX_PATH - 1} is the limit",
            slug="case-path-too-long",
            cure="give --case a directory with a shorter path",
        )


def _is_begun(folder: Path) -> bool:
    """Return whether a folder without a check cache is empty, or left by a command killed before making one."""
    return all(
        entry.name == LOCK or (entry.name == RUNS and entry.is_dir() and not any(entry.iterdir()))
        for entry in folder.iterdir()
    )


def _refuse_links(folder: Path) -> None:
    """Refuse a case in which a link would redirect writes or removals.

    Raises:
        UsageError: ``case-has-link``.
    """
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(place, name)):
                raise UsageError(
                    f"{os.path.join(place, name)} is a symbolic link, which a case must not contain",
                    slug="case-has-link",
                    cure="remove it, or give another --case; the case directory itself may be a link",
                )


def _lock(folder: Path) -> Callable[[], None]:
    """Lock the case until the returned function is called; a kill releases it too.

    Raises:
        UsageError: When another command is using the case (``case-in-use``).
        StoreError: When the file cannot be made (``case-unwritable``).
    """
    in_use = UsageError(
        f"another command is using the case {folder}",
        slug="case-in-use",
        cure="wait for it, or choose another directory: --case DIR",
    )
    from filelock import FileLock, Timeout  # its import takes longer than all else here; most commands have no case

    try:
        return FileLock(folder / LOCK, thread_local=False).acquire(PATIENCE_SECONDS).lock.release
    except Timeout:
        raise in_use from None
    except OSError as error:
        if error.errno == errno.ENOLCK:  # a file system without locks
            return lambda: None
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> StoreError:
    return StoreError(
        f"case directory {folder} cannot be written: {error.strerror or error}",
        slug="case-unwritable",
        cure="give --case a directory that you can write to",
    )


def versions() -> dict[str, str]:
    """Return the installed versions that a result may depend on."""
    found = {"python": platform.python_version(), "platform": platform.platform(), "machine": platform.machine()}
    if kind := processor():
        found["processor"] = kind
    for package in ("tensortriage", "numpy", "onnx", "onnx_ir", "onnxruntime", "openvino", "tensorrt", "torch"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def now() -> str:
    """Return the current time, UTC, ISO 8601, seconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def command_line() -> str:
    """Return the command as the user typed it, with the program's own name."""
    return " ".join(["triage", *sys.argv[1:]])
