"""Files that a check leaves behind, sorted by its verdict into ``good/``, ``bad/``, ``other/``; nothing is replaced."""

import datetime
import shutil
from collections.abc import Sequence
from pathlib import Path

from tensortriage.errors import StoreError
from tensortriage.frozen_dataclass import frozen_dataclass

GOOD, BAD, OTHER = "good", "bad", "other"


@frozen_dataclass
class Artifacts:
    """Which files are sorted, and where to.

    Attributes:
        paths: The files, relative to the folder of the check; those that a check did not write are left out.
        folder: The place of the three directories.
    """

    paths: tuple[Path, ...] = ()
    folder: Path = Path("polygraphy_artifacts")

    def sort(self, verdict: str, label: str, *, beside: Path | None = None) -> list[Path]:
        """Move the files of a check into the directory of its verdict, and return their new place.

        Args:
            verdict: `GOOD`, `BAD` or `OTHER`.
            label: Name of the iteration, e.g. ``N3_outputs``; it becomes part of the names, behind the time.
            beside: The folder of the check, where it differs from this process's.

        Raises:
            StoreError: When a file cannot be moved (``artifact-not-moved``).
        """
        when = datetime.datetime.now().strftime("%m-%d-%y_%H-%M-%S")
        moved: list[Path] = []
        for path in self.paths:
            source = path if beside is None else beside / path
            if not source.exists():
                continue
            try:
                moved.append(_move(source, self.folder / verdict, f"{source.stem}_{when}_{label}", source.suffix))
            except OSError as error:
                raise StoreError(
                    f"{source} cannot be moved to {self.folder / verdict}: {error.strerror or error}",
                    slug="artifact-not-moved",
                    cure="give --artifacts-dir a directory that you can write to",
                ) from error
        return moved


def _move(source: Path, folder: Path, stem: str, suffix: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    target, count = folder / f"{stem}{suffix}", 1
    while target.exists():
        count += 1
        target = folder / f"{stem}_{count}{suffix}"
    shutil.move(source, target)
    return target


def paths_of(words: Sequence[str]) -> tuple[Path, ...]:
    """Return artifact paths from words, each once."""
    return tuple(dict.fromkeys(map(Path, words)))
