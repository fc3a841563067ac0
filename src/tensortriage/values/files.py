"""Files that others may tamper with: only regular ones are read, and a written file replaces the old one in one step.

A path may lead to a device that never ends, to a FIFO that nobody writes to, or to a file that claims a terabyte. The
errors are those of the operating system, so that callers need to expect no others.
"""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from tensortriage.errors import StoreError

MAX_DOCUMENT_BYTES = 1 << 30
"""Largest document (JSON, a list of names, a log) that is read into memory."""
NAME_CHARACTERS = 40
"""Bytes of a name that its partial one has: file systems allow 255 bytes, and a character may take four."""
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
}


def absence(path: Path) -> str:
    """Return that a path does not exist, as a sentence; of a link, where it leads."""
    if path.is_symlink():
        return (
            f"{path} is a link to {os.readlink(path)}, which does not exist (copied with cp -r? cp -rL takes the file)"
        )
    return f"{path} does not exist"


HASHED_BYTES = 256 << 20
"""Size in bytes above which files are distinguished by size and time of change."""
_PIECE = 1 << 20
_READING = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading, through any links.

    Raises:
        OSError: When it cannot be opened or is something else; a FIFO is not waited for.
    """
    handle = os.open(path, _READING)
    try:
        kind = stat.S_IFMT(os.fstat(handle).st_mode)
        if kind != stat.S_IFREG:
            raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'something else')}, not a regular file", str(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: Path, most: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        OSError: As `open_regular`, and when it holds more than ``most`` bytes.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size} bytes; {most} is the limit", str(path))
        content = file.read(size + 1)  # room for as much is taken at once, so that no more is asked for
        while len(content) <= most and (more := file.read(_PIECE)):  # it grew, or is one of those that have no size
            content += more
        return content


def content_digest(path: Path) -> str:
    """Return a digest of a file's contents; empty for a missing or unreadable file."""
    try:
        facts = path.stat()
        if facts.st_size > HASHED_BYTES:
            return f"{facts.st_size} bytes, changed {facts.st_mtime_ns}"
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


@contextlib.contextmanager
def placed(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears under its name when the block ends, and not at all when it fails.

    Until then it lies next to it under a name that nobody can guess, so that no link waits there. Files that killed
    processes left there for the same name are removed.

    Raises:
        OSError: When it cannot be written.
    """
    sweep_partial(path)
    partial = partial_name(path)
    try:
        with partial.open("xb") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file that appears under its name as a whole, or not at all.

    Raises:
        StoreError: When it cannot be written (``file-unwritable``).
    """
    try:
        with placed(path) as file:
            # A file name that is not UTF-8 has lone surrogates, which become escapes as in JSON.
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}",
            slug="file-unwritable",
            cure="free disk space or choose another directory",
        ) from error


def partial_name(path: Path) -> Path:
    """Return a new hidden name next to a path, which names its purpose and its process."""
    return path.with_name(f".{path.name[-NAME_CHARACTERS:]}.{os.getpid()}-{secrets.token_hex(8)}.partial")


def sweep_partial(path: Path) -> None:
    """Remove the partial files of a path that dead processes have left."""
    pattern = re.compile(re.escape(f".{path.name[-NAME_CHARACTERS:]}.") + r"(\d+)-[0-9a-f]{16}\.partial")
    with contextlib.suppress(OSError):
        for entry in os.scandir(path.parent):
            match = pattern.fullmatch(entry.name)
            if match is None or is_alive(int(match[1])):
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)


def is_alive(pid: int) -> bool:
    """Whether there is a process of this number."""
    import psutil  # only where there is something to look for

    try:
        return bool(psutil.pid_exists(pid))
    except OverflowError:
        return False
