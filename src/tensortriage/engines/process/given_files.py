"""Files that an engine made of a model before: given with ``file=``, they run in place of what it would build now."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from tensortriage.errors import UsageError

FILE = "file"
"""The option that names one."""


@runtime_checkable
class RunsFiles(Protocol):
    """Capability of an engine: it runs a file that was made of the model before."""

    def building(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options with which it builds the model itself; None without a file, and for one that shows values."""
        ...


def without_file(options: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return options without the file; None where there is none."""
    return {key: value for key, value in options.items() if key != FILE} if FILE in options else None


def checked_file(path: str, title: str) -> str:
    """Return the path of a given file.

    Raises:
        UsageError: When there is none (``engine-option-file``).
    """
    if not Path(path).is_file():
        raise UsageError(
            f"{path} does not exist", slug="engine-option-file", cure=f"give the path of a file of {title}"
        )
    return path
