"""Temporary model files: engines compile files, so every edited model needs one, and none may outlive its use."""

import itertools
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Self

from tensortriage.model.model import ExternalData, Model

MOST_FILE_BYTES = (1 << 31) - 1
"""Largest file that engines parse, which is protobuf's limit; a larger one, which we read, they get as a copy."""


class Workspace:
    """A folder of temporary model files, removed on exit.

    Engines take paths as UTF-8; a file, or a case, whose path is no such text is copied elsewhere first. So is a file
    beyond `MOST_FILE_BYTES`, with its weights next to it.

    Args:
        parent: Parent of the folder (a case keeps its temporaries inside itself); the system's default when None.
        kept: Folder for engines that can cache builds; None to cache nothing.
        in_place: Whether no file is written for a model where its engine can do without, which leaves large weights
            where they are; such a session knows no plan.

    Attributes:
        kept: Likewise.
        in_place: Likewise.
    """

    def __init__(self, parent: Path | None = None, *, kept: Path | None = None, in_place: bool = False) -> None:
        self.kept, self.in_place = kept, in_place
        if parent is not None and not _is_text(parent):
            parent = None
        if parent is not None:
            parent.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="triage-", dir=parent))
        self._count = itertools.count()
        self._one_at_a_time = threading.Lock()

    def file(self, model: Model) -> Path:
        """Return a file that holds exactly this model: its own when unedited and fit for engines, else a temporary one.

        All files of a workspace lie in one folder and share their large weights there.
        """
        if model.path is not None and _is_text(model.path) and model.path.stat().st_size <= MOST_FILE_BYTES:
            return model.path
        path = self.folder / f"{next(self._count)}.onnx"
        with self._one_at_a_time:  # else a weight is put in place twice, while it is read
            model.save(path, external_data=ExternalData.KEEP)
        return path

    def release(self, path: Path) -> None:
        """Remove a temporary model early (shared weights stay); files outside the workspace are left alone."""
        if path.parent == self.folder:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_text(path: Path) -> bool:
    """Return whether a path is valid UTF-8; Python keeps other bytes as surrogates."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        return False
    return True
