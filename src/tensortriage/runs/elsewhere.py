"""Other processes and machines that ``--cluster`` names: all that commands ask of them.

A package that knows such a cluster registers a reader of the option's value under `GROUP`; nothing here imports it.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, cast

from tensortriage.errors import UsageError
from tensortriage.values.registered import registered

if TYPE_CHECKING:
    from tensortriage.runs.commands.process import RunsCommands

GROUP = "tensortriage.clusters"
"""Entry-point group of functions that make a `NamedCluster` of the value of ``--cluster``."""


class OpenedCluster(ABC):
    """A cluster that is connected to."""

    @abstractmethod
    def jobs(self) -> int:
        """Return how many commands can run at once.

        Raises:
            UsageError: When no node meets the requirements that the user gives for each.
        """

    @abstractmethod
    def commands(self) -> "RunsCommands":
        """Return a runner of commands there."""


class NamedCluster(ABC):
    """A cluster as the user names it."""

    @abstractmethod
    def opened(self) -> AbstractContextManager[OpenedCluster]:
        """Connect to it, or start it.

        Raises:
            EngineMissing: When the package that connects to it is not installed.
            UsageError: When it does not answer.
        """


def named_cluster(text: str) -> NamedCluster:
    """Return the cluster that the value of ``--cluster`` names, read by the first package, by name, that can.

    Raises:
        UsageError: When the value is malformed, or no package knows clusters (``cluster-unknown``).
    """
    for point in registered(GROUP).values():
        return cast(NamedCluster, point.load()(text))
    raise UsageError(
        "no package that knows clusters is installed", slug="cluster-unknown", cure="reinstall tensortriage"
    )
