"""Opening what somebody else put somewhere: only regular files are read, and documents only up to a size.

A path may lead to a device that never ends, to a FIFO that nobody writes to, or to a file that claims a terabyte. The
errors are those of the operating system, so that whoever opens files needs to expect no others.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

MAX_DOCUMENT_BYTES = 1 << 30
"""Largest document (JSON, a list of names, a log) that is read into memory."""
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
}


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading, whatever links lead to it.

    Raises:
        OSError: When it cannot be opened or is something else; a FIFO is not waited for.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
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
        return file.read(most + 1)
