"""Prebuilt files of an engine: given with ``file=``, they run in place of a new build."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from tensortriage.errors import UsageError
from tensortriage.values.spec import ValueSpec

FILE = "file"
"""The option that names one."""


class HeldOtherwise(Protocol):
    """Form of a model's inputs and outputs in a given file, where other names or orders of axes are possible."""

    def feed(self, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return a feed of the model's as the file takes it, by the file's names."""
        ...

    def results(self, found: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return results of the file as the model has them, by the model's names."""
        ...


Arrange = Callable[[Sequence[ValueSpec], Sequence[ValueSpec]], HeldOtherwise]
"""Finds how inputs and outputs that a given file has are those of a model."""


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
