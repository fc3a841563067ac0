"""The dependencies of a command besides its words: the files that they name and that it does not write itself.

A changed script or data file makes it another command, with answers of its own. But a log or a result that the command
writes changes with every run and must not count; so the files are looked at before and after the first run, and the
case remembers which it reads.
"""

import re
import shutil
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.check_cache import CheckCache, digest
from tensortriage.values.files import content_digest

_SPLIT = re.compile(r"[\s=:,;'\"<>|&()]+")


class CheckIdentity:
    """The identity under which a command's answers are stored, with the content of the files that it reads.

    Args:
        bound_to: Digest of everything else: the model, the words, the rules.
        words: Program and arguments.
        notes: Remembers which files the command reads.
        written: Files in the words that this program writes.
    """

    def __init__(
        self, bound_to: str, words: Sequence[str], notes: CheckCache, *, written: Collection[Path] = ()
    ) -> None:
        self._bound_to = bound_to
        self._notes = notes
        self._before: dict[str, str] | None = None
        known = notes.get(self._note, _Files)
        if known is None:
            ours = set(written)
            self._before = file_digests(name for name in named_files(words) if Path(name) not in ours)
        self.digest = digest(bound_to, self._before if known is None else file_digests(known.read))

    @property
    def settled(self) -> bool:
        """Whether it is known which files the command reads."""
        return self._before is None

    def settle(self) -> str:
        """Return the digest, now that the command has run: files that have changed meanwhile are its own results."""
        if self._before is not None:
            after = file_digests(self._before)
            read = tuple(name for name, content in self._before.items() if after[name] == content)
            self.digest = digest(self._bound_to, file_digests(read))
            self._notes.put(self._note, "files that the check reads", _Files(read), seconds=0.0)
            self._before = None
        return self.digest

    @property
    def _note(self) -> str:
        return digest(self._bound_to, "files read")


@frozen_dataclass
class _Files:
    """Files that a command reads and does not write."""

    read: tuple[str, ...]


def named_files(words: Sequence[str]) -> tuple[str, ...]:
    """Return every existing file that occurs in the words of a command, its program included."""
    names = [word for text in words for word in (text, *_SPLIT.split(text)) if word]
    if words and (program := shutil.which(words[0])):
        names.append(program)
    return tuple(name for name in dict.fromkeys(names) if _is_file(name))


def file_digests(names: Iterable[str]) -> dict[str, str]:
    """Return a digest of the content of files; of one that is not there, nothing."""
    return {name: content_digest(Path(name)) for name in names}


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False
