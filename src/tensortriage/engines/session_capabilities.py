"""Capabilities of a session beyond the Protocol of `tensortriage.engines.base`, declared as those of an engine are."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortriage.engines.base import Choice
from tensortriage.engines.capabilities import DeclaredCapability

if TYPE_CHECKING:
    pass


class BoundsRuns(DeclaredCapability):
    """Capability of a session: the time limit of a run can be set once the reference's time is known."""

    @abstractmethod
    def allow(self, run_seconds: float) -> None:
        """Limit later runs to the given seconds."""


class FedOtherwise(DeclaredCapability):
    """Capability of a session of another process: inputs lie there in a given layout, and two feeds run at once."""

    @property
    @abstractmethod
    def layouts(self) -> Sequence[str]:
        """Names of `tensortriage_worker.feeding.LAYOUTS` that reach the engine, and `HELD` where results do."""

    @property
    @abstractmethod
    def own_options(self) -> Sequence[str]:
        """Words of options that a script's engine declares itself."""

    @abstractmethod
    def run_laid_out(self, feed: Mapping[str, np.ndarray], layout: str) -> Mapping[str, np.ndarray]:
        """Run once from memory that lies as one of `layouts`, as `Session.run`."""

    @abstractmethod
    def streams(
        self, feeds: Sequence[Mapping[str, np.ndarray]], runs: int
    ) -> Sequence[Sequence[Mapping[str, np.ndarray]]]:
        """Run two feeds at once, each so often, the second in another session of the same model.

        Returns the result of `tensortriage_worker.feeding.side_by_side`, the second one preceded by that of its session
        alone; errors as with `Session.run`.
        """


class TellsTactics(DeclaredCapability):
    """Capability of a session: it reports the choices of the engine while building."""

    @abstractmethod
    def tactics(self) -> Sequence[Choice]:
        """Return the choices in the order they were made; empty when the engine reported none."""


class BuildsWhenFed(DeclaredCapability):
    """Capability of a session: it builds for the shapes that it is fed, and again for others."""

    @abstractmethod
    def builds_made(self) -> Sequence[float]:
        """Return the wall seconds of every build so far, without one that opening the session waited for."""


class RepeatsBuild(DeclaredCapability):
    """Capability of a session: its build can be repeated with the vendor's own tool."""

    @abstractmethod
    def command(self) -> str:
        """Return the command line; empty as long as nothing is built."""


class ShowsValues(DeclaredCapability):
    """Capability of a session: it shows inner values of the model as it was built."""

    @property
    @abstractmethod
    def observation(self) -> str:
        """One word for the way in which values become visible; empty when none are."""

    @abstractmethod
    def captured(self, feed: Mapping[str, np.ndarray], values: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Run once and yield ``(value name, array)`` for the visible ones of the wanted values."""


class AnswersQuestions(DeclaredCapability):
    """Capability of a session: it answers questions in a language of its own, about a feed or without one."""

    @abstractmethod
    def query(
        self, question: str, feed: Mapping[str, np.ndarray] | None = None, **arguments: Any
    ) -> tuple[Mapping[str, Any], Mapping[str, np.ndarray]]:
        """Return the answer, in types of JSON, and arrays by name; errors as with `Session.run`."""


class KnowsSomeValues(DeclaredCapability):
    """Capability of a session: it may lack marked values of the model, as the PyTorch network behind it does."""

    @abstractmethod
    def run_known(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once, as `Session.run`, and return the known outputs; the network's own are."""
