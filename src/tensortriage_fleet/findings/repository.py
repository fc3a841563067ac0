"""Where a finding is in the files of a repository: at the line that the exporter made its node from, else in the model.

An exporter writes the path of the source on the machine where the model was exported. A checkout elsewhere has the same
file under the same last parts of that path; files of installed packages cannot be mended there.
"""

import dataclasses
import os
import re
from pathlib import Path, PurePosixPath
from typing import Self

from tensortriage_fleet.findings.finding import Finding

_INSTALLED = re.compile(r"(^|/)(site|dist)-packages/|(^|/)lib/python\d")
_MOST_BYTES = 4 << 20
"""Largest source file whose lines are counted; a larger one was not written by hand."""


@dataclasses.dataclass(frozen=True, slots=True)
class FilePlace:
    """A file, as a path from the repository with ``/``, and a line from 1; 0 for none."""

    file: str
    line: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Repository:
    """The checkout that files are in.

    Attributes:
        root: Its folder, absolute.
    """

    root: Path

    @classmethod
    def here(cls) -> Self:
        """Return that of GitHub's job (``GITHUB_WORKSPACE``), else the one around the working directory, else that."""
        here = Path.cwd()
        if os.environ.get("GITHUB_WORKSPACE"):
            return cls(Path(os.environ["GITHUB_WORKSPACE"]).resolve())
        return cls(next((place for place in (here, *here.parents) if (place / ".git").exists()), here))

    def place(self, finding: Finding, model: Path | None) -> FilePlace:
        """Return the line of the source of a finding's node where the repository has it, else the model's file."""
        source = self._source(finding.file, finding.line) if finding.line else ""
        return FilePlace(source, finding.line) if source else FilePlace("" if model is None else self.path(model))

    def path(self, file: Path) -> str:
        """Return the path of a file from the repository; one outside is unchanged."""
        absolute = Path(os.path.abspath(file))
        for known in (absolute, absolute.resolve()):
            if known.is_relative_to(self.root):
                return known.relative_to(self.root).as_posix()
        return file.as_posix()

    def _source(self, recorded: str, line: int) -> str:
        """Return the path of a source file from the repository; empty where it is not, or is too short to be the same.

        Args:
            recorded: Its path on the machine of the export.
            line: A line that it has.
        """
        path = PurePosixPath(recorded.replace("\\", "/"))
        if _INSTALLED.search(path.as_posix()) or ".." in path.parts:
            return ""
        known = Path(recorded)
        parts = known.relative_to(self.root).parts if known.is_relative_to(self.root) else path.parts
        for start in range(len(parts)):
            file = self.root.joinpath(*parts[start:])
            if parts[start] not in ("/", "") and file.is_relative_to(self.root) and _has_line(file, line):
                return file.relative_to(self.root).as_posix()
        return ""


def _has_line(file: Path, line: int) -> bool:
    try:
        return file.is_file() and file.stat().st_size <= _MOST_BYTES and file.read_bytes().count(b"\n") + 1 >= line
    except (OSError, ValueError):
        return False
