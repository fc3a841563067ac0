"""The code that users' engines have loaded in a case: all files that a script runs, known only after a run.

An answer is stored before it is known which files the next run will load, so the list does not go into its key. Instead
a case has *generations* of an engine: the first begins with nothing known and learns files with every answer. As long
as all files that it has learned are unchanged on the disk, it is the engine that answered. Where a file has changed,
another generation is the current one, or a new one, and old answers are of another engine.
"""

import dataclasses
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path

from tensortriage.engines.process.loaded_code import REPLACED, digest_of, loaded
from tensortriage.engines.registry import ResolvedEngine
from tensortriage.errors import StoreError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.serial import dump, load

CODE = "engine-code.json"
"""The file of a case that lists the generations."""


@frozen_dataclass
class Generation:
    """An engine with code that it has loaded.

    Attributes:
        engine: Identity of the engine without that code.
        name: Its identity among the others, which survives a loss of this list.
        files: Path to digest.
    """

    engine: str
    name: str
    files: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def current(self) -> bool:
        """Whether all of it is on the disk as it was."""
        return all(digest_of(path) == digest for path, digest in self.files.items())


@frozen_dataclass
class _Generations:
    generations: list[Generation]
    format: str = "tensortriage.engine-code/1"


class EngineCode:
    """The generations of a case's engines.

    Args:
        folder: The case.
        fresh: Whether every engine begins another one.
    """

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        self._path = folder / CODE
        self._generations: list[Generation] | None = None
        self._fresh = fresh
        self._open: dict[str, tuple[Generation, str, Mapping[str, str]]] = {}
        self._lock = threading.Lock()

    def identity(self, engine: ResolvedEngine) -> str:
        """Return the cache identity of an engine, with the code that it is known to load."""
        identity = engine.identity
        if "file" not in engine.spec.options:
            return identity
        with self._lock:
            if identity not in self._open:
                file = str(engine.file)
                old = {path: digest for path, digest in loaded(file).items() if digest_of(path) != digest}
                self._open[identity] = self._generation(identity), file, old
            return f"{identity} {self._open[identity][0].name}"

    def note(self) -> None:
        """Record the code that engines have loaded so far; call it before an answer is stored."""
        with self._lock:
            changed = False
            for generation, file, old in self._open.values():
                for path, digest in loaded(file).items():
                    known = generation.files.get(path)
                    if digest not in (known, old.get(path)) and known != REPLACED:
                        generation.files[path] = digest if known is None else REPLACED
                        changed = True
            if changed:
                self._write()

    def _write(self) -> None:
        dump(_Generations(self._known), self._path)

    @property
    def _known(self) -> list[Generation]:
        if self._generations is None:
            try:
                self._generations = load(self._path, _Generations).generations if self._path.exists() else []
            except StoreError:  # damaged; what was answered is of engines that nobody knows any more
                self._generations = []
        return self._generations

    def _generation(self, identity: str) -> Generation:
        fitting = [known for known in self._known if known.engine == identity and known.current]
        if fitting and not self._fresh:
            return fitting[-1]
        self._known.append(Generation(identity, secrets.token_hex(8)))
        self._write()
        return self._known[-1]
