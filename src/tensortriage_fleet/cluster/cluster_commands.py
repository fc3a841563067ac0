"""Commands as tasks of a cluster: each runs in the same folder on whatever node is free.

The folder of a command must be there on every node (a shared file system, as clusters have); its output on the terminal
comes back, its files lie in that folder.
"""

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tensortriage.sdk import CommandLine, Finished, Processes, UsageError, search_is_ending
from tensortriage_fleet.cluster.cluster_spec import TaskNeeds
from tensortriage_fleet.cluster.ray_cluster import Cluster

R = TypeVar("R")


class ClusterCommands:
    """Runs commands on a cluster, from any number of threads; see `tensortriage.sdk.RunsCommands`.

    Args:
        cluster: The cluster.
        needs: Requirements of every command on its node.
    """

    def __init__(self, cluster: Cluster, needs: TaskNeeds) -> None:
        self._cluster = cluster
        self._needs = needs
        self._running: set[Any] = set()
        self._lock = threading.Lock()
        self._closed = False

    def run(self, command: CommandLine, /) -> Finished:
        """Run a command to its end; a node that is lost meanwhile costs the time until then.

        Raises:
            UsageError: When it cannot be started (``check-program-missing``), or a node does not have the folder
                (``cluster-folder-missing``).
            WorkerLost: When it is cancelled, or worker after worker is lost (``cluster-worker-lost``).
            EngineMissing: When the cluster cannot be used any more (``cluster-head-lost``, ``cluster-failed``).
        """
        there = dataclasses.replace(command, folder=(command.folder or Path()).absolute())
        with self._under_way(run_there, there) as task:
            result: Finished = self._cluster.result(task)
            return result

    @contextlib.contextmanager
    def _under_way(self, function: Callable[..., R], *arguments: object) -> Iterator[Any]:
        with self._lock:
            if self._closed:
                raise search_is_ending()
            task = self._cluster.submit(function, *arguments, needs=self._needs)
            self._running.add(task)
        try:
            yield task
        except BaseException:
            self._cluster.cancel(task)
            raise
        finally:
            with self._lock:
                self._running.discard(task)

    def kill_running(self) -> None:
        """Kill running commands."""
        with self._lock:
            for task in self._running:
                self._cluster.cancel(task)

    def close(self) -> None:
        """Kill running commands, and start nothing new."""
        with self._lock:
            self._closed = True
        self.kill_running()


def run_there(command: CommandLine) -> Finished:
    """Run a command in a worker of a cluster.

    Raises:
        UsageError: When the node has no such folder.
    """
    _see(command.folder or Path())
    return _of_this_worker().run(command)


@functools.cache
def _of_this_worker() -> Processes:
    """Return the runner of a worker's commands, shared because starting a watchdog per command is slow."""
    return Processes()


def _see(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(
            f"a node of the cluster has no folder {folder}",
            slug="cluster-folder-missing",
            cure="work in a folder that all nodes share, or use --cluster local:N",
        )
