"""Builds requested from workers, for callers that repeat them without this package: a repro for others."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


@dataclasses.dataclass(slots=True)
class AskedBuild:
    """A build requested from a worker, which any process with the adapter can repeat.

    Attributes:
        adapter: As `IsolatedEngine` takes it.
        model: The file that was handed over.
        options: Options passed to the adapter.
        files: Options whose values are files.
        fed_as: The engine's name of each input that it has.
        info: Report of the adapter about the build; empty when it failed.
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
    """Report every build that is requested from a worker while this is open and its files exist."""
    _listeners.append(hear)
    try:
        yield
    finally:
        _listeners.remove(hear)


def told(asked: AskedBuild) -> AskedBuild:
    """Report the start of a build to the listeners, and return it."""
    for hear in _listeners:
        hear(asked)
    return asked
