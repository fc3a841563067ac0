"""Commands as tasks of a cluster: each runs in the same folder on whatever node is free.

The folder of a command must be there on every node (a shared file system, as clusters have); what a command prints
comes back, what it writes lies in that folder.
"""

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensortriage.cluster.cluster_spec import TaskNeeds
from tensortriage.cluster.ray_cluster import Cluster
from tensortriage.errors import UsageError
from tensortriage.runs.commands.process import Finished, Processes


class ClusterCommands:
    """Runs commands on a cluster, from any number of threads; see `tensortriage.runs.commands.process.RunsCommands`.

    Args:
        cluster: The cluster.
        needs: What every command needs of a node.
    """

    def __init__(self, cluster: Cluster, needs: TaskNeeds) -> None:
        self._cluster = cluster
        self._needs = needs
        self._running: set[Any] = set()
        self._lock = threading.Lock()
        self._closed = False

    def run(
        self,
        words: Sequence[str],
        *,
        folder: Path | None = None,
        timeout_seconds: float | None = None,
        patterns: Sequence[re.Pattern[str]] = (),
        stdout: Path | None = None,
    ) -> Finished:
        """Run a command to its end; a node that is lost meanwhile costs the time until then.

        Raises:
            UsageError: When it cannot be started (``check-program-missing``), or a node does not have the folder
                (``cluster-folder-missing``).
            EngineCrashed: When it is cancelled, or takes worker after worker with it (``cluster-worker-lost``).
        """
        place = (folder or Path()).absolute()
        with self._lock:
            if self._closed:
                raise UsageError(
                    "the search is ending, and starts no more commands",
                    slug="check-program-missing",
                    cure="start the search again",
                )
            task = self._cluster.submit(
                run_there, tuple(words), str(place), timeout_seconds, tuple(patterns), stdout, needs=self._needs
            )
            self._running.add(task)
        try:
            finished: Finished = self._cluster.result(task)
        finally:
            with self._lock:
                self._running.discard(task)
        return finished

    def kill_running(self) -> None:
        """Kill what is running."""
        with self._lock:
            for task in self._running:
                self._cluster.cancel(task)

    def close(self) -> None:
        """Kill what is running, and start nothing new."""
        with self._lock:
            self._closed = True
        self.kill_running()


def run_there(
    words: Sequence[str],
    folder: str,
    timeout_seconds: float | None,
    patterns: Sequence[re.Pattern[str]],
    stdout: Path | None,
) -> Finished:
    """Run a command in a worker of a cluster.

    Raises:
        UsageError: When the node has no such folder.
    """
    if not Path(folder).is_dir():
        raise UsageError(
            f"a node of the cluster has no folder {folder}",
            slug="cluster-folder-missing",
            cure="work in a folder that all nodes share, or take --cluster local:N",
        )
    with Processes() as processes:
        return processes.run(
            words, folder=Path(folder), timeout_seconds=timeout_seconds, patterns=patterns, stdout=stdout
        )
