"""Common part of sessions that build their engine when a feed needs it, and again when another feed does."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensortriage.engines.feed_checks import closed
from tensortriage.engines.process.isolated import IsolatedSession
from tensortriage.engines.session_capabilities import BoundsRuns, BuildsWhenFed
from tensortriage.values.spec import ValueSpec


class RebuiltSession(BoundsRuns, BuildsWhenFed):
    """A session over at most one build in a worker at a time.

    Args:
        inputs: Inputs of a run.
        outputs: Outputs of a run.
        title: The engine's name in messages.
    """

    def __init__(self, inputs: Sequence[ValueSpec], outputs: Sequence[ValueSpec], *, title: str) -> None:
        self.inputs: Sequence[ValueSpec] = tuple(inputs)
        self.outputs: Sequence[ValueSpec] = tuple(outputs)
        self._title = title
        self._built: IsolatedSession | None = None
        self._run_seconds: float | None = None
        self._closed = False
        self._build_seconds: list[float] = []

    @property
    def info(self) -> Mapping[str, Any]:
        """The worker's report about the build; empty before there is one."""
        return self._built.info if self._built is not None else {}

    def builds_made(self) -> Sequence[float]:
        """Return the wall seconds of the builds for the shapes of feeds; see `BuildsWhenFed`."""
        return tuple(self._build_seconds)

    def allow(self, run_seconds: float) -> None:
        """Limit later runs to the given seconds; a longer one counts as a hang."""
        self._run_seconds = run_seconds
        if self._built is not None:
            self._built.allow(run_seconds)

    def close(self) -> None:
        """Release the worker; calling it twice is harmless."""
        built, self._built, self._closed = self._built, None, True
        if built is not None:
            built.close()

    def _rebuilt(self, build: Callable[[], IsolatedSession]) -> IsolatedSession:
        """Return a new build, which takes the place of the one before; that one is let go first."""
        old, self._built = self._built, None
        if old is not None:
            old.close()
        started = time.perf_counter()
        self._built = build()
        self._build_seconds.append(time.perf_counter() - started)
        if self._run_seconds is not None:
            self._built.allow(self._run_seconds)
        return self._built

    def _check_open(self) -> None:
        if self._closed:
            raise closed(self._title)
