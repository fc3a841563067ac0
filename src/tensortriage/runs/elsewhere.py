"""Other processes and machines that ``--cluster`` names: all that commands ask of them.

Who knows such a cluster registers, under `GROUP`, what reads the value of the option; nothing here imports it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from tensortriage.errors import UsageError
from tensortriage.values.registered import registered

if TYPE_CHECKING:
    from tensortriage.engines.spec import EngineSpec
    from tensortriage.runs.commands.process import RunsCommands
    from tensortriage.search.execution.executors import Executor
    from tensortriage.search.problem import Oracle

GROUP = "tensortriage.clusters"
"""Entry-point group of functions that make a `NamedCluster` of the value of ``--cluster``."""


class OpenedCluster(ABC):
    """A cluster that is connected to."""

    @abstractmethod
    def jobs(self) -> int:
        """Return how many commands can run at once.

        Raises:
            UsageError: When no node has what the user says that each needs.
        """

    @abstractmethod
    def commands(self) -> "RunsCommands":
        """Return a runner of commands there."""

    @abstractmethod
    def checks(
        self,
        oracle: "Oracle[str]",
        target: "EngineSpec",
        parts: "Callable[[], tuple[Callable[[Any], Oracle[str]], Any] | None]",
    ) -> "AbstractContextManager[Executor[str]]":
        """Return a context manager that runs checks there, and ends them at its exit.

        Args:
            oracle: Answers in this process as long as there are no parts.
            target: The engine that checks need.
            parts: What makes the oracle there, a function of an importable module, and what it makes it of, sent once;
                None as long as that is not known.
        """


class NamedCluster(ABC):
    """A cluster as the user names it."""

    @abstractmethod
    def opened(self) -> AbstractContextManager[OpenedCluster]:
        """Connect to it, or start it.

        Raises:
            EngineMissing: When what connects to it is not installed.
            UsageError: When it does not answer.
        """


def named_cluster(text: str) -> NamedCluster:
    """Return the cluster that the value of ``--cluster`` names, read by the first by name of those who can.

    Raises:
        UsageError: When the value is malformed, or nobody knows clusters (``cluster-unknown``).
    """
    for point in registered(GROUP).values():
        return cast(NamedCluster, point.load()(text))
    raise UsageError(
        "no package that knows clusters is installed", slug="cluster-unknown", cure="reinstall tensortriage"
    )
