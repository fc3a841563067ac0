"""What a command depends on besides its words: the files that they name and that it does not write itself.

A changed script or data file makes it another command, to which old answers do not belong. But a log or a result that
the command writes changes with every run and must not count; so the files are looked at before and after the first run.
"""

import hashlib
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from tensortriage.values.files import open_regular

HASHED_BYTES = 256 << 20
"""Files beyond that are told apart by size and time of change."""

_SPLIT = re.compile(r"[\s=:,;'\"<>|&()]+")


def named_files(words: Sequence[str]) -> tuple[str, ...]:
    """Return every existing file that occurs in the words of a command, its program included."""
    names = [word for text in words for word in (text, *_SPLIT.split(text)) if word]
    if words and (program := shutil.which(words[0])):
        names.append(program)
    return tuple(name for name in dict.fromkeys(names) if _is_file(name))


def file_digests(names: Iterable[str]) -> dict[str, str]:
    """Return a digest of the content of files; of one that is not there, nothing."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = _digest(Path(name))
        except OSError:
            found[name] = ""
    return found


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def _digest(path: Path) -> str:
    facts = path.stat()
    if facts.st_size > HASHED_BYTES:
        return f"{facts.st_size} bytes, changed {facts.st_mtime_ns}"
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
