"""Command lines side by side: on this machine, whose GPUs are shared out among them, or on a cluster."""

import concurrent.futures
import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Self, TypeVar

from tensortriage.sdk import CommandLine, Finished, Gpus, Processes, RunsCommands, visible_gpus
from tensortriage_fleet.cluster.cluster_commands import ClusterCommands
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec, TaskNeeds
from tensortriage_fleet.cluster.ray_cluster import open_cluster

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class CommandNeeds:
    """Needs of a command.

    Attributes:
        gpus: Number of GPUs; on this machine all there are where they are fewer.
        on_gpu: Whether it computes on one; it has one to itself where there is one.
        tags: Names of resources that a node was started with; this machine counts as having all.
    """

    gpus: int = 0
    on_gpu: bool = False
    tags: tuple[str, ...] = ()


class CommandPool:
    """Runs commands, each in a thread that waits for it; no result depends on the order in which they end.

    Attributes:
        jobs: How many run at once.

    Args:
        jobs: How many run at once.
        places: Runners of commands, by their needs.
        gpus: GPUs of this machine, which are shared out.
        waiting: How many more are handed over, and wait where they will run.
    """

    def __init__(
        self, jobs: int, places: Mapping[CommandNeeds, RunsCommands], gpus: Sequence[str], *, waiting: int = 0
    ) -> None:
        self.jobs = jobs
        self._places = places
        self._gpus = Gpus(gpus)
        self._threads = concurrent.futures.ThreadPoolExecutor(jobs + waiting, thread_name_prefix="command")

    @classmethod
    @contextlib.contextmanager
    def open(cls, cluster: ClusterSpec | None, jobs: int, needs: Collection[CommandNeeds]) -> Iterator[Self]:
        """Open a pool; at the end of the block its commands are killed, and nothing new is started.

        Args:
            cluster: The cluster; None for this machine.
            jobs: How many run at once on this machine; a cluster reports how many it has room for.
            needs: All resources that will be requested.

        Raises:
            UsageError: When the cluster does not answer, or no node has the resources (``cluster-resource-missing``).
        """
        with contextlib.ExitStack() as entered:
            if cluster is None:
                pool = cls(jobs, dict.fromkeys(needs, Processes()), visible_gpus())
            else:
                opened, requirements = entered.enter_context(open_cluster(cluster)), cluster.needs
                there = int(opened.offered().get("GPU", 0))
                of_nodes = {
                    each: TaskNeeds(
                        max(requirements.gpus, each.gpus, min(there, int(each.on_gpu))),
                        tuple(dict.fromkeys((*requirements.tags, *each.tags))),
                    )
                    for each in needs
                }
                slots = max(sum(opened.slots(of_node) for of_node in of_nodes.values()), 1)
                places = {each: ClusterCommands(opened, of_node) for each, of_node in of_nodes.items()}
                pool = cls(slots, places, (), waiting=-(-slots // 4))  # Ray shares its own GPUs out
            yield entered.enter_context(contextlib.closing(pool))

    def submit(
        self, needs: CommandNeeds, work: Callable[[Callable[[CommandLine], Finished]], T], /
    ) -> concurrent.futures.Future[T]:
        """Run the commands in a thread.

        Args:
            needs: Requirements of its commands.
            work: Is given the function that runs a command to its end; see `Processes.run`.
        """
        return self._threads.submit(self._do, needs, work)

    def _do(self, needs: CommandNeeds, work: Callable[[Callable[[CommandLine], Finished]], T]) -> T:
        with self._gpus.taken(max(needs.gpus, int(needs.on_gpu))):
            return work(self._places[needs].run)

    def close(self) -> None:
        """Kill running commands, and start nothing new."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for place in {*self._places.values()}:
            place.close()
        self._threads.shutdown(wait=True)
