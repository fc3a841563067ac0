"""Commands as tasks of a cluster: each runs in the same folder on whatever node is free.

The folder of a command must be there on every node (a shared file system, as clusters have); what a command prints
comes back, what it writes lies in that folder.
"""

import contextlib
import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tensortriage.sdk import CommandLine, Finished, Processes, UsageError, search_is_ending
from tensortriage_fleet.cluster.cluster_spec import TaskNeeds
from tensortriage_fleet.cluster.ray_cluster import Cluster
from tensortriage_fleet.cluster.relay import STDERR, STDOUT, Relay, is_interrupted

R = TypeVar("R")
LISTEN_SECONDS = 0.5
END_SECONDS = 2.5
"""Seconds for a command to end by itself after Ctrl-C: one more than for a command that is called here."""


@dataclasses.dataclass(frozen=True, slots=True)
class WholeRun:
    """Ending of a command that is no check.

    Attributes:
        code: Exit code, negative for a signal.
        stdout: All that it wrote there.
    """

    code: int
    stdout: bytes


class ClusterCommands:
    """Runs commands on a cluster, from any number of threads; see `tensortriage.sdk.RunsCommands`.

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
            WorkerLost: When it is cancelled, or worker after worker is lost (``cluster-worker-lost``).
            EngineMissing: When the cluster cannot be used any more (``cluster-head-lost``, ``cluster-failed``).
        """
        there = dataclasses.replace(command, folder=(command.folder or Path()).absolute())
        with self._under_way(run_there, there) as task:
            result: Finished = self._cluster.result(task)
            return result

    def run_whole(self, words: Sequence[str], hear: Callable[[str, bytes], object]) -> WholeRun:
        """Run a command in the folder of this process, and return its ending; errors as `run`.

        Where its node is lost, it is restarted on another one: it should resume from its case. Ctrl-C reaches it,
        and it has `END_SECONDS` to write its results; a second one ends it at once.

        Args:
            words: Program and arguments.
            hear: Called with the name of a stream, ``stdout`` or ``stderr``, and its new output.

        Raises:
            StoreError: When the folder cannot be written (``cluster-folder-unwritable``).
        """
        folder = Path().absolute()
        with (
            Relay(folder) as relay,
            self._under_way(run_whole_there, tuple(words), str(folder), str(relay.place)) as task,
        ):

            def listen() -> bool:
                ended = bool(self._cluster.ready([task], seconds=LISTEN_SECONDS))
                for stream in (STDERR, STDOUT):
                    if new := relay.heard(stream):
                        hear(stream, new)
                return ended

            try:
                while not listen():
                    pass
            except KeyboardInterrupt:
                relay.interrupt()
                last = time.monotonic() + END_SECONDS
                while not listen():
                    if time.monotonic() > last:
                        raise
            result: WholeRun = self._cluster.result(task)
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


def run_whole_there(words: Sequence[str], folder: str, place: str) -> WholeRun:
    """Run a command in a worker of a cluster, and return its ending.

    Args:
        words: Program and arguments.
        folder: Where it runs.
        place: Folder of its `Relay`.

    Raises:
        UsageError: When the node has no such folder.
    """
    relay = Path(place)
    _see(relay)
    with (relay / STDERR).open("wb", buffering=0) as stderr:
        finished = _of_this_worker().run(
            CommandLine(words, folder=Path(folder), stdout=relay / STDOUT),
            hear=stderr.write,
            interrupted=lambda: is_interrupted(relay),
        )
    assert finished.code is not None  # it has no time limit
    return WholeRun(finished.code, (relay / STDOUT).read_bytes())


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
