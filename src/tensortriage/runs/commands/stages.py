"""The file in which a command, or a person, finds the piece to judge, in the user's folder or in a copy of it.

One check at a time works in the user's own folder, as with Polygraphy. Several at once each get a folder of their own
with links to everything in the user's folder, so that relative paths and file names work there too; only files that
checks write for themselves are not shared. Files that a check has destroyed in its folder are restored for the next
one.
"""

import contextlib
import dataclasses
import os
import queue
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.io.save import POOL
from tensortriage.model.model import Model
from tensortriage.model.scratch_files import is_transient, save_transient


@frozen_dataclass
class CheckPlace:
    """A place for one check at a time.

    Attributes:
        folder: Its own folder; None for the folder of this process.
        artifact: Path of the piece, from the folder of this process.
        links: Links in its own folder, with their targets.
    """

    folder: Path | None
    artifact: Path
    links: Mapping[Path, Path] = dataclasses.field(default_factory=dict)

    def restore(self) -> None:
        """Restore missing files, and clear the place of the piece."""
        if self.artifact.is_dir() and not self.artifact.is_symlink():
            shutil.rmtree(self.artifact, ignore_errors=True)
        self.artifact.parent.mkdir(parents=True, exist_ok=True)
        for link, target in self.links.items():
            if not os.path.lexists(link):
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(target)


class Stages:
    """All places for checks.

    Args:
        artifact: The file that holds the piece, as the user named it.
        jobs: Checks at once.
        private: More paths that every check needs for itself.
        scratch: The place of further folders, for more than one check at once.
        keep: Leave the last piece where it is.

    Raises:
        UsageError: When a file of that name exists that was not written here (``iter-artifact-exists``), or several
            checks at once would share it because its path is absolute (``iter-artifact-shared``).
    """

    def __init__(
        self, artifact: Path, *, jobs: int, private: Collection[Path], scratch: Path, keep: bool = False
    ) -> None:
        self._artifact = artifact
        self._keep = keep
        self._free: queue.SimpleQueue[CheckPlace] = queue.SimpleQueue()
        self._pooled = (artifact.parent / POOL).exists()
        if jobs == 1:
            _clear(artifact)
            self._free.put(CheckPlace(None, artifact))
            return
        if artifact.is_absolute() or ".." in artifact.parts:
            raise UsageError(
                f"{jobs} checks at once cannot share {artifact}",
                slug="iter-artifact-shared",
                cure="give --iter-artifact a path inside the current directory, or --jobs 1",
            )
        for number in range(jobs):
            folder = (scratch / f"check-{number}").resolve()
            shutil.rmtree(folder, ignore_errors=True)
            own = {path for path in (artifact, *private, scratch) if not path.is_absolute()}
            self._free.put(CheckPlace(folder, folder / artifact, dict(_links(Path(), folder, own))))

    @contextlib.contextmanager
    def show(self, piece: Model) -> Iterator[CheckPlace]:
        """Yield a directory with a piece in it; waits for a free one.

        Raises:
            ModelError: When the piece cannot be written.
        """
        stage = self._free.get()
        try:
            stage.restore()
            save_transient(piece, stage.artifact)
            yield stage
        finally:
            if not self._keep:
                with contextlib.suppress(OSError):
                    stage.artifact.unlink()
            self._free.put(stage)

    def close(self) -> None:
        """Remove the weights next to the pieces."""
        if not self._pooled and not self._keep:
            shutil.rmtree(self._artifact.parent / POOL, ignore_errors=True)


def _clear(artifact: Path) -> None:
    """Remove the files of an earlier run; anything else is not ours to remove."""
    if not artifact.exists():
        return
    if not is_transient(artifact):
        raise UsageError(
            f"{artifact} exists already",
            slug="iter-artifact-exists",
            cure="move it, or give --iter-artifact another path",
        )
    artifact.unlink()


def _links(source: Path, folder: Path, own: Collection[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield links that show everything of a folder in another one, apart from paths that are kept apart."""
    heads = {path.parts[0] for path in own if path.parts}
    for entry in source.iterdir():
        inner = {path.relative_to(entry.name) for path in own if path.parts[0] == entry.name and len(path.parts) > 1}
        if inner and entry.is_dir():
            yield from _links(entry, folder / entry.name, inner)
        elif entry.name not in heads:
            yield folder / entry.name, entry.resolve()
