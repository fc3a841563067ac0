"""Places that a command is to write at its end, looked at before hours of work are spent on them."""

import enum
import tempfile
from pathlib import Path

from tensortriage.errors import UsageError


class Place(enum.Enum):
    """Kind of output: a file, a directory, or the one that the name implies."""

    FILE = "file"
    FOLDER = "folder"
    EITHER = "either"


def check_output(path: Path | None, *inputs: Path | None, place: Place = Place.FILE) -> None:
    """Refuse a place that cannot or must not be written; directories that are missing are made when it is.

    Args:
        path: The path to write; None for nothing.
        inputs: Files that are read, and that commands printed at the end still name.
        place: Kind of file or folder.

    Raises:
        UsageError: When the path is a directory and should be none (``output-is-directory``), or the other way round
            (``output-not-a-directory``), is neither, such as a device (``output-is-device``), is one of the inputs
            (``output-is-input``), or lies where nothing can be made (``output-unwritable``).
    """
    if path is None:
        return
    if place is Place.FILE and path.is_dir():
        raise UsageError(f"{path} is a directory", slug="output-is-directory", cure="name a file in it")
    if place is Place.FOLDER and path.exists() and not path.is_dir():
        raise UsageError(f"{path} is not a directory", slug="output-not-a-directory", cure="name a directory")
    if path.exists() and not path.is_dir() and not path.is_file():
        raise UsageError(f"{path} is not a file", slug="output-is-device", cure="name a regular file")
    if path.exists() and any(one is not None and one.exists() and path.samefile(one) for one in inputs):
        raise UsageError(
            f"{path} is read by the same command and would be overwritten",
            slug="output-is-input",
            cure="name another file",
        )
    _check_writable(path, path if place is not Place.FILE and path.is_dir() else path.parent)


def _check_writable(path: Path, folder: Path) -> None:
    """Make a file without a name where the output, or the directory it needs, will have to be made."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {folder}: {error.strerror or error}",
            slug="output-unwritable",
            cure="name another place, or check its permissions and free space",
        ) from error
