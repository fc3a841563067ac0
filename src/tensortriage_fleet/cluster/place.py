"""A Ray cluster as commands know it: named with ``--cluster``, and connected to."""

import contextlib
import dataclasses
from collections.abc import Iterator

from tensortriage.sdk import NamedCluster, OpenedCluster
from tensortriage_fleet.cluster.cluster_commands import ClusterCommands
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec, TaskNeeds
from tensortriage_fleet.cluster.ray_cluster import Cluster, open_cluster


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterPlace(OpenedCluster):
    """A connected cluster.

    Attributes:
        needs: Requirements of a command on its node, from the user.
    """

    cluster: Cluster
    needs: TaskNeeds

    def jobs(self) -> int:
        """Return how many commands can run at once."""
        return self.cluster.slots(self.needs)

    def commands(self) -> ClusterCommands:
        """Return the runner of commands there."""
        return ClusterCommands(self.cluster, self.needs)


@dataclasses.dataclass(frozen=True, slots=True)
class RayPlace(NamedCluster):
    """One that ``--cluster`` names.

    Attributes:
        spec: The parsed option.
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
