"""A Ray cluster as commands know it: named with ``--cluster``, and connected to."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from tensortriage.sdk import EngineSpec, Executor, NamedCluster, OpenedCluster, Oracle, resolved_engine
from tensortriage_fleet.cluster.cluster_checks import ClusterChecks
from tensortriage_fleet.cluster.cluster_commands import ClusterCommands
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec, TaskNeeds, needs_of_engine
from tensortriage_fleet.cluster.ray_cluster import Cluster, Shared, open_cluster


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterPlace(OpenedCluster):
    """A connected cluster.

    Attributes:
        cluster: The cluster.
        needs: What the user says that a check needs.
    """

    cluster: Cluster
    needs: TaskNeeds

    def jobs(self) -> int:
        """Return how many commands can run at once."""
        return self.cluster.slots(self.needs)

    def commands(self) -> ClusterCommands:
        """Return the runner of commands there."""
        return ClusterCommands(self.cluster, self.needs)

    @contextlib.contextmanager
    def checks(
        self,
        oracle: Oracle[str],
        target: EngineSpec,
        parts: Callable[[], tuple[Callable[[Any], Oracle[str]], Any] | None],
    ) -> Iterator[Executor[str]]:
        """Give the runner of a target's checks there; see `OpenedCluster`."""
        on_gpu = resolved_engine(target).on_gpu
        needs = needs_of_engine(target.name, on_gpu=on_gpu, asked=self.needs, offered=self.cluster.offered())

        def send() -> Shared | None:
            found = parts()
            return None if found is None else self.cluster.share(*found)

        with contextlib.closing(ClusterChecks(self.cluster, needs, oracle=oracle, send=send)) as checks:
            yield checks


@dataclasses.dataclass(frozen=True, slots=True)
class RayPlace(NamedCluster):
    """One that ``--cluster`` names.

    Attributes:
        spec: What it says.
    """

    spec: ClusterSpec

    @contextlib.contextmanager
    def opened(self) -> Iterator[ClusterPlace]:
        """Connect to it; see `NamedCluster`."""
        with open_cluster(self.spec) as cluster:
            yield ClusterPlace(cluster, self.spec.needs)


def named(text: str) -> RayPlace:
    """Return the cluster that the value of ``--cluster`` names.

    Raises:
        UsageError: When it names none (``cluster-malformed``).
    """
    return RayPlace(ClusterSpec.parse(text))
