"""A cluster as a place for the checks of a reduction: commands, or engines, with what each needs of a node."""

import dataclasses
from collections.abc import Callable

from tensortriage.cluster.cluster_spec import TaskNeeds, needs_of_engine
from tensortriage.cluster.ray_cluster import Cluster, Shared
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.runs.commands.cluster_commands import ClusterCommands
from tensortriage.search.execution.cluster_checks import ClusterChecks
from tensortriage.search.problem import Oracle


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterPlace:
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
        """Return what runs commands there."""
        return ClusterCommands(self.cluster, self.needs)

    def checks(
        self, oracle: Oracle[str], target: EngineSpec, send: Callable[[Cluster], Shared | None]
    ) -> ClusterChecks[str]:
        """Return what runs checks of a target there."""
        on_gpu = resolve(target).on_gpu
        needs = needs_of_engine(target.name, on_gpu=on_gpu, asked=self.needs, offered=self.cluster.offered())
        return ClusterChecks(self.cluster, needs, oracle=oracle, send=lambda: send(self.cluster))
