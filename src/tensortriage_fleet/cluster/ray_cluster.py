"""The one module that imports Ray: connects, runs functions as tasks, and cleans up.

Ray runs a task again whose worker or node was lost, on another one, so such a loss costs the tasks that were running
there and nothing else. A cluster that is started here listens on this machine only, requires a token that nobody else
knows, and keeps its files in the temporary folder of the command. Ray's reports of usage are switched off before it is
imported.
"""

import atexit
import contextlib
import importlib
import logging
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensortriage.sdk import EngineMissing, TriageError, UsageError, WorkerLost
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec, TaskNeeds

RETRIES = 5
"""Restarts of a task whose worker was lost: a node that dies may take several, one after the other."""
LOOK_SECONDS, HEAD_SECONDS = 5.0, 20.0
"""Interval of checks for the head while a task runs, and the time until the wait is given up: after 60
seconds Ray ends the whole program, with the exit code of a finding."""
LEASE_SECONDS = 10
"""Seconds for which a worker takes one task of this command after the other, while some wait, before others are offered
them. With Ray's half second every command of a second costs a tenth more: free places elsewhere are reported every 100
ms."""
STORE_BYTES = 512 << 20
"""Shared memory of a cluster that is started here; Ray keeps the excess in files."""
_THREADS = "OMP_NUM_THREADS"
"""Ray sets it to 1 in its workers, which other programs inherit, and sums then come in another order."""


class Cluster:
    """A connection; made by `open_cluster`."""

    def __init__(self, ray: Any, spec: ClusterSpec) -> None:
        self._ray = ray
        self._spec = spec
        self._threads = os.environ.get(_THREADS)
        self._remote = ray.remote(_call)
        self._head, self._seen = _head_of(ray), time.monotonic()
        self.lost = False

    def offered(self) -> dict[str, float]:
        """Return the resources of all nodes together, by Ray's names: ``CPU``, ``GPU`` and the tags of nodes."""
        return {str(name): float(amount) for name, amount in self._ray.cluster_resources().items()}

    def slots(self, needs: TaskNeeds) -> int:
        """Return how many tasks can run at once.

        Raises:
            UsageError: When no node has their resources (``cluster-resource-missing``).
        """
        offered = self.offered()
        amounts = {"CPU": 1, **({"GPU": needs.gpus} if needs.gpus else {}), **dict.fromkeys(needs.tags, 1)}
        found = min(int(offered.get(name, 0.0) // amount) for name, amount in amounts.items())
        if found < 1:
            missing = next(name for name, amount in amounts.items() if offered.get(name, 0.0) < amount)
            raise UsageError(
                f"no node of the cluster {self._spec.text} offers {missing}",
                slug="cluster-resource-missing",
                cure=f"start one with ray start --resources '{{\"{missing}\": 1}}'"
                if missing in needs.tags
                else "add a node that has it",
            )
        return found

    def submit(self, function: Callable[..., object], *arguments: object, needs: TaskNeeds | None = None) -> Any:
        """Begin a task and return a reference to its result.

        Args:
            function: A function of an importable module.
            arguments: Its arguments; they are pickled.
            needs: Requirements of the task on its node.
        """
        wanted = needs or TaskNeeds()
        options = self._remote.options(
            num_cpus=1,
            num_gpus=wanted.gpus,
            resources=dict.fromkeys(wanted.tags, 1),
            max_retries=RETRIES,
            name=getattr(function, "__name__", "task"),
        )
        return options.remote(function, arguments, self._threads)

    def ready(self, references: Sequence[Any]) -> list[Any]:
        """Wait until at least one task has ended, and return all that have."""
        done, _ = self._ray.wait(list(references), num_returns=1)
        more, _ = self._ray.wait(list(references), num_returns=len(references), timeout=0)
        return [reference for reference in references if reference in {*done, *more}]

    def result(self, reference: Any) -> Any:
        """Return the result of a task.

        Raises:
            Exception: The exception of the task.
            WorkerLost: When its worker was lost again and again, or it was cancelled (``cluster-worker-lost``).
            EngineMissing: When the head of the cluster is gone (``cluster-head-lost``), or it fails otherwise, as where
                one of Ray's own processes on this machine has ended (``cluster-failed``).
        """
        errors = self._ray.exceptions
        try:
            while True:
                try:
                    return self._ray.get(reference, timeout=LOOK_SECONDS)
                except errors.GetTimeoutError:
                    self._look()
        except errors.RayTaskError as error:
            cause = error.cause
            raise cause if isinstance(cause, Exception) else error from None
        except (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
            errors.TaskCancelledError,
        ) as error:
            raise WorkerLost(
                f"a worker of the cluster {self._spec.text} was lost {RETRIES + 1} times in the same task "
                f"({type(error).__name__})",
                slug="cluster-worker-lost",
                cure="run it on this machine, without --cluster, to see why",
            ) from error
        except errors.RayError as error:
            raise EngineMissing(
                f"the cluster {self._spec.text} failed ({type(error).__name__}: {_first_line(error)})",
                slug="cluster-failed",
                cure="start the cluster again and run the same command: finished tasks are not run again",
            ) from error

    def _look(self) -> None:
        """See whether the head is there.

        Raises:
            EngineMissing: When it has not been for `HEAD_SECONDS`.
        """
        if self._head is None or _answers(self._head):
            self._seen = time.monotonic()
        elif self.lost or time.monotonic() - self._seen > HEAD_SECONDS:
            self.lost = True
            raise EngineMissing(
                f"the head of the cluster {self._spec.text} is gone",
                slug="cluster-head-lost",
                cure="start the cluster again and run the same command: finished tasks are not run again",
            )

    def cancel(self, reference: Any) -> None:
        """Kill a task; one that has ended is fine."""
        with contextlib.suppress(Exception):
            self._ray.cancel(reference, force=True)


@contextlib.contextmanager
def open_cluster(spec: ClusterSpec) -> Iterator[Cluster]:
    """Connect to a cluster, or start one for the time of the block.

    Raises:
        EngineMissing: When Ray is not installed (``ray-missing``).
        UsageError: When the cluster does not answer (``cluster-unreachable``), or has another version of this program
            (``cluster-version``).
    """
    ray = _imported(local=spec.workers > 0)
    scratch = _folder()
    try:
        ray.init(**_arguments(spec, scratch))
    except Exception as error:  # Ray raises many kinds of exceptions, and so do its libraries
        raise UsageError(
            f"the cluster {spec.text} does not answer: {_first_line(error)}",
            slug="cluster-unreachable",
            cure="see that it runs (ray status) and that versions of Ray and Python are the same on both sides"
            if not spec.workers
            else "give TMPDIR a short path, since Ray's sockets lie there, and see that there is memory left",
        ) from error
    cluster = None
    try:
        cluster = Cluster(ray, spec)
        if not spec.workers:
            _compare_versions(cluster, spec)
        yield cluster
    finally:
        if cluster is not None and cluster.lost:
            atexit.unregister(ray.shutdown)  # it waits for the head until Ray ends the program
        else:
            ray.shutdown()
        shutil.rmtree(scratch, ignore_errors=True)


def _folder() -> str:
    """Return a folder for Ray's files; the path of its sockets, 65 bytes longer, may have 107 bytes at most."""
    short = os.path.join(tempfile.gettempdir(), "r")
    try:
        os.mkdir(short, 0o700)
    except FileExistsError:
        return tempfile.mkdtemp(prefix="r")
    return short


def _imported(*, local: bool) -> Any:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_DEDUP_LOGS_SKIP_REGEX"] = "^"  # all of it: Ray prints notices to stdout, which has a document
    os.environ.setdefault("RAY_worker_lease_timeout_milliseconds", f"{LEASE_SECONDS * 1000:.0f}")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # tasks without GPU see the command's devices
    if local:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise EngineMissing(
            "--cluster needs Ray, which is not installed", slug="ray-missing", cure="pip install 'tensortriage[ray]'"
        ) from error


def _arguments(spec: ClusterSpec, scratch: str) -> dict[str, Any]:
    quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
    if not spec.workers:
        return {"address": spec.address, **quiet}
    return {
        "address": "local",
        "num_cpus": spec.workers,
        "include_dashboard": False,
        "object_store_memory": STORE_BYTES,
        "_temp_dir": scratch,
        "_node_ip_address": "127.0.0.1",
        **quiet,
    }


def _head_of(ray: Any) -> tuple[str, int] | None:
    """Return the address of the head; None where Ray does not report it, as through its client port."""
    try:
        host, _, port = str(ray.get_runtime_context().gcs_address).rpartition(":")
        return host, int(port)
    except Exception:  # of Ray's client, which has none
        return None


def _answers(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=LOOK_SECONDS):
            return True
    except OSError:
        return False


def _compare_versions(cluster: Cluster, spec: ClusterSpec) -> None:
    from tensortriage import __version__

    try:
        found = cluster.result(cluster.submit(_version))
    except TriageError:
        raise
    except Exception as error:
        found = f"none ({_first_line(error)})"
    if found != __version__:
        raise UsageError(
            f"the nodes of {spec.text} have tensortriage {found}, and this machine {__version__}",
            slug="cluster-version",
            cure="install the same version everywhere",
        )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], threads: str | None) -> Any:
    """Run a function in a worker."""
    if threads is None:
        os.environ.pop(_THREADS, None)
    else:
        os.environ[_THREADS] = threads
    return function(*arguments)


def _version() -> str:
    from tensortriage import __version__

    return __version__
