"""Commands as tasks of a cluster: each runs in the same folder on whatever node is free.

The folder of a command must be there on every node (a shared file system, as clusters have); what a command prints
comes back, what it writes lies in that folder.
"""

import dataclasses
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tensortriage.cluster.cluster_spec import TaskNeeds
from tensortriage.cluster.ray_cluster import Cluster
from tensortriage.errors import UsageError
from tensortriage.runs.commands.process import CommandLine, Finished, Processes, search_is_ending

R = TypeVar("R")


@dataclasses.dataclass(frozen=True, slots=True)
class WholeRun:
    """What a command that is no check came to, with all of its stdout.

    Attributes:
        code: Exit code, negative for a signal.
        stdout: All that it wrote there.
        stderr: What it wrote there, shortened where that is very much.
    """

    code: int
    stdout: bytes
    stderr: str


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

    def run(self, command: CommandLine, /) -> Finished:
        """Run a command to its end; a node that is lost meanwhile costs the time until then.

        Raises:
            UsageError: When it cannot be started (``check-program-missing``), or a node does not have the folder
                (``cluster-folder-missing``).
            EngineCrashed: When it is cancelled, or takes worker after worker with it (``cluster-worker-lost``).
        """
        return self._result(run_there, dataclasses.replace(command, folder=(command.folder or Path()).absolute()))

    def run_whole(self, words: Sequence[str]) -> WholeRun:
        """Run a command in the folder of this process, and return all that it writes; errors as `run`.

        Where its node is lost, it is begun again on another one: it should go on from what it kept.
        """
        return self._result(run_whole_there, tuple(words), str(Path().absolute()))

    def _result(self, function: Callable[..., R], *arguments: object) -> R:
        with self._lock:
            if self._closed:
                raise search_is_ending()
            task = self._cluster.submit(function, *arguments, needs=self._needs)
            self._running.add(task)
        try:
            result: R = self._cluster.result(task)
        finally:
            with self._lock:
                self._running.discard(task)
        return result

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


def run_there(command: CommandLine) -> Finished:
    """Run a command in a worker of a cluster.

    Raises:
        UsageError: When the node has no such folder.
    """
    _see(command.folder or Path())
    with Processes() as processes:
        return processes.run(command)


def run_whole_there(words: Sequence[str], folder: str) -> WholeRun:
    """Run a command in a worker of a cluster, and return all that it writes.

    Raises:
        UsageError: When the node has no such folder.
    """
    _see(Path(folder))
    with tempfile.TemporaryFile() as stdout, Processes() as processes:  # without a name: a cancelled task is killed
        finished = processes.run(CommandLine(words, folder=Path(folder)), stdout=stdout)
        assert finished.code is not None  # it has no time limit
        stdout.seek(0)
        return WholeRun(finished.code, stdout.read(), finished.printed.text)


def _see(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(
            f"a node of the cluster has no folder {folder}",
            slug="cluster-folder-missing",
            cure="work in a folder that all nodes share, or take --cluster local:N",
        )
