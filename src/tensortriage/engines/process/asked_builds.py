"""What workers are asked to build, for whoever wants the same built without this package: a repro that is handed on."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


@dataclasses.dataclass(slots=True)
class AskedBuild:
    """What a worker was asked to build, which any process that has the adapter can build again.

    Attributes:
        adapter: As `IsolatedEngine` takes it.
        model: The file that was handed over.
        options: What the adapter was told.
        files: Options whose values are files.
        fed_as: The engine's name of each input that it has.
        info: What the adapter told about the build; empty when it failed.
    """

    adapter: str
    model: Path
    options: Mapping[str, str]
    files: Sequence[str]
    fed_as: Mapping[str, str] = dataclasses.field(default_factory=dict)
    info: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_listeners: list[Callable[[AskedBuild], object]] = []


@contextlib.contextmanager
def heard_builds(hear: Callable[[AskedBuild], object]) -> Iterator[None]:
    """Tell of every build that a worker is asked for while this is open, while its files are there."""
    _listeners.append(hear)
    try:
        yield
    finally:
        _listeners.remove(hear)


def told(asked: AskedBuild) -> AskedBuild:
    """Tell whoever listens of a build that begins, and return it."""
    for hear in _listeners:
        hear(asked)
    return asked
