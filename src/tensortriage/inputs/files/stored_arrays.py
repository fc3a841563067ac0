"""Arrays that are still on disk, and how a set of them is one sample or many.

The formats that hold named arrays and nothing else (npz, .npy files, safetensors) have no notion of samples. Two
conventions give them one, both without loading anything:

- numbered names ``0/NAME``, ``1/NAME``, ...: each number is a sample, shapes may differ between samples. This is what
  we write.
- one extra leading axis on every array, compared with the model's inputs: each index along it is a sample. Labels, and
  whatever else is no input, are divided likewise where their first axis has the same length.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from tensortriage.errors import DataError
from tensortriage.inputs.conform import fits
from tensortriage.inputs.feed import LazyTensors
from tensortriage.values.spec import ValueSpec

_NUMBERED = re.compile(r"(0|[1-9]\d{0,9})/(.+)", re.DOTALL)


class Stored(Protocol):
    """One array on disk."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, known without reading the numbers."""
        ...

    def load(self) -> np.ndarray:
        """Read the whole array."""
        ...

    def rows(self) -> Iterator[np.ndarray]:
        """Yield the slices along the first axis, reading only one at a time."""
        ...


class ArrayStored:
    """An array that is memory-mapped or in memory already."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """See `Stored`."""
        return self._array.shape

    def load(self) -> np.ndarray:
        """See `Stored`."""
        return self._array

    def rows(self) -> Iterator[np.ndarray]:
        """See `Stored`."""
        return (self._array[i] for i in range(len(self._array)))


def samples(stored: Mapping[str, Stored], specs: Sequence[ValueSpec], path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the samples that a set of named arrays holds.

    Args:
        stored: The arrays of one file or directory.
        specs: Inputs of the model; empty when there is no model, and then no leading axis counts as samples.
        path: Their file, for messages.

    Raises:
        DataError: For numbered names with gaps (``samples-not-numbered``), or leading axes of different lengths
            (``samples-unequal``).
    """
    known = {spec.name: spec for spec in specs}
    if stored and all(_NUMBERED.fullmatch(name) and name not in known for name in stored):
        yield from _numbered(stored, path)
    elif known and _is_stacked(stored, known, path):
        count = next(stored[name].shape[0] for name in known if name in stored)
        rows = {name: each.rows() for name, each in stored.items() if each.shape[:1] == (count,)}
        whole = {name: each.load() for name, each in stored.items() if name not in rows}
        for row in zip(*rows.values(), strict=True):
            yield {**dict(zip(rows, map(np.asarray, row), strict=True)), **whole}
    else:
        yield LazyTensors({name: array.load for name, array in stored.items()})


def looks_numbered(names: Sequence[str]) -> bool:
    """Return whether a reader would read these names as numbered samples."""
    return bool(names) and all(_NUMBERED.fullmatch(name) for name in names)


def _numbered(stored: Mapping[str, Stored], path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    groups: dict[int, dict[str, Callable[[], np.ndarray]]] = {}
    for full, array in stored.items():
        match = _NUMBERED.fullmatch(full)
        assert match is not None
        groups.setdefault(int(match[1]), {})[match[2]] = array.load
    if sorted(groups) != list(range(len(groups))):
        lacking = next(i for i in range(len(groups)) if i not in groups)
        raise DataError(
            f"{path}: arrays are numbered by sample, but there is no '{lacking}/...'",
            slug="samples-not-numbered",
            cure="number the samples 0/NAME, 1/NAME, ... without gaps",
        )
    for index in range(len(groups)):
        yield LazyTensors(groups[index])


def _is_stacked(stored: Mapping[str, Stored], known: Mapping[str, ValueSpec], path: Path) -> bool:
    """Return whether every input's array has exactly one more axis, at the front, than the input of its name."""
    lengths = {}
    for name, array in stored.items():
        spec = known.get(name)
        if spec is None:
            continue
        if spec.shape is None or len(array.shape) != len(spec.shape) + 1:
            return False
        if not fits(array.shape[1:], spec):
            return False
        lengths[name] = array.shape[0]
    if len(set(lengths.values())) > 1:
        raise DataError(
            f"{path}: the first axis of every input counts the samples, but the lengths differ: "
            + ", ".join(f"'{name}' {length}" for name, length in lengths.items()),
            slug="samples-unequal",
            cure="store the same number of samples for every input",
        )
    return bool(lengths)
