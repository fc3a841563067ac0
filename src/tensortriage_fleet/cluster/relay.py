"""The live output of a command on another node, and its interruption by Ctrl-C: files in a folder of both sides.

A folder that all nodes see is what such a command needs anyway. Its stdout and stderr are files there, which are read
as they grow; a file that appears there is a Ctrl-C. The folder is gone with the object.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Self

from tensortriage.sdk import StoreError

STDOUT, STDERR = "stdout", "stderr"
_CTRL_C = "ctrl-c"


class Relay:
    """The side that called the command.

    Args:
        folder: Folder in which the command runs.

    Raises:
        StoreError: When nothing can be written there (``cluster-folder-unwritable``).
    """

    def __init__(self, folder: Path) -> None:
        try:
            self.place = Path(tempfile.mkdtemp(prefix=".triage-", dir=folder))
        except OSError as error:
            raise StoreError(
                f"nothing can be written into {folder}: {error.strerror or error}",
                slug="cluster-folder-unwritable",
                cure="call the command in a folder that can be written, and that all nodes share",
            ) from error
        self._read = {STDOUT: 0, STDERR: 0}

    def heard(self, stream: str) -> bytes:
        """Return the output since the last call; from the beginning where the command was restarted."""
        try:
            with (self.place / stream).open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._read[stream]:
                    self._read[stream] = 0
                file.seek(self._read[stream])
                new = file.read()
        except OSError:
            return b""
        self._read[stream] += len(new)
        return new

    def interrupt(self) -> None:
        """Have Ctrl-C reach the command."""
        (self.place / _CTRL_C).touch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.place, ignore_errors=True)


def is_interrupted(place: Path) -> bool:
    """Whether the calling side wants the command to end; also when it is gone."""
    return (place / _CTRL_C).exists() or not place.exists()
