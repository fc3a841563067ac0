"""The connection to a cluster, with a stand-in for Ray that runs every task at once in this process.

What Ray itself does with it is in `tests/engines/test_cluster.py`.
"""

import math
import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from tensortriage import __version__
from tensortriage.errors import EngineMissing, UsageError, WorkerLost
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec, TaskNeeds
from tensortriage_fleet.cluster.ray_cluster import RETRIES, Cluster, open_cluster

THREADS = "OMP_NUM_THREADS"
SET_BEFORE_RAY = (
    "RAY_USAGE_STATS_ENABLED",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO",
    "RAY_AUTH_MODE",
    "RAY_AUTH_TOKEN",
    "RAY_DEDUP_LOGS_SKIP_REGEX",
)


class RayError(Exception):
    """What Ray raises when it has lost something."""


class RayTaskError(RayError):
    """What Ray raises when a task has."""

    def __init__(self, cause):
        super().__init__("task")
        self.cause = cause


class WorkerCrashedError(RayError):
    """What Ray raises when the process of a task has ended."""


class LocalRayletDiedError(RayError):
    """What Ray raises when its own process on this machine has ended, as it does when one of its agents has."""


class GetTimeoutError(RayError):
    """What Ray raises when a task takes longer than was waited for."""


class Reference:
    """Stands for something that is kept by Ray; ready when it says so."""

    def __init__(self, value=None, error=None, *, ready=True):
        self.value, self.error, self.ready = value, error, ready

    def hex(self):
        return f"{id(self):x}"


class StandIn:
    """Has of Ray what the connection calls; notes how tasks and it itself were begun."""

    class exceptions:  # noqa: N801 - Ray's name
        RayTaskError, RayError, GetTimeoutError = RayTaskError, RayError, GetTimeoutError
        NodeDiedError = OutOfMemoryError = TaskCancelledError = WorkerCrashedError = WorkerCrashedError

    def __init__(self, offered=(), *, unreachable=None, lost=False):
        self.offered, self.unreachable, self.lost = dict(offered), unreachable, lost
        self.options, self.cancelled, self.begun, self.fetched = [], [], None, 0

    def init(self, **given):
        if self.unreachable is not None:
            raise self.unreachable
        self.begun = given

    def shutdown(self):
        self.begun = "ended"

    def cluster_resources(self):
        return self.offered

    def put(self, value):
        return Reference(value)

    def remote(self, function):
        stand_in = self

        class Task:
            def options(self, **given):
                stand_in.options.append(given)
                return self

            def remote(self, *arguments):
                if stand_in.lost:
                    return Reference(error=WorkerCrashedError("gone"))
                try:
                    return Reference(function(*arguments))
                except Exception as error:
                    return Reference(error=RayTaskError(error))

        return Task()

    def get(self, reference, *, timeout=None):
        self.fetched += 1
        if reference.error is not None:
            raise reference.error
        return reference.value

    def wait(self, references, *, num_returns, timeout=None):
        done = [reference for reference in references if reference.ready][:num_returns]
        return done, [reference for reference in references if reference not in done]

    def cancel(self, reference, *, force):
        self.cancelled.append((reference, force))
        raise RayError("it has ended")


def connected(**given):
    """Return a stand-in and a connection to it."""
    ray = StandIn(**given)
    return ray, Cluster(ray, ClusterSpec.parse("auto"))


@pytest.fixture
def imported(monkeypatch):
    """Return a function that makes a stand-in what ``import ray`` gives."""
    for name in SET_BEFORE_RAY:
        monkeypatch.setenv(name, "1")

    def give(stand_in):
        monkeypatch.setitem(sys.modules, "ray", stand_in)
        return stand_in

    return give


@pytest.mark.parametrize(
    ("needs", "slots"),
    [
        (TaskNeeds(), 8),
        (TaskNeeds(gpus=1), 5),
        (TaskNeeds(gpus=2), 2),
        (TaskNeeds(tags=("tensorrt",)), 3),
        (TaskNeeds(1, ("tensorrt", "a100")), 1),
    ],
)
def test_as_many_tasks_run_at_once_as_the_scarcest_resource_allows(needs, slots):
    offered = {"CPU": 8.0, "GPU": 5.0, "tensorrt": 3.0, "a100": 1.0}
    assert connected(offered=offered)[1].slots(needs) == slots


@pytest.mark.parametrize(
    ("needs", "missing"), [(TaskNeeds(gpus=2), "GPU"), (TaskNeeds(tags=("a100",)), "a100"), (TaskNeeds(), "CPU")]
)
def test_what_no_node_offers_is_named(needs, missing):
    offered = {"GPU": 1.0} if missing == "CPU" else {"CPU": 1.0, "GPU": 1.0}
    with pytest.raises(UsageError) as caught:
        connected(offered=offered)[1].slots(needs)
    assert caught.value.slug == "cluster-resource-missing"
    assert f"offers {missing}" in caught.value.message
    assert ("--resources" in caught.value.cure) == (missing == "a100")


def test_a_task_is_given_its_arguments_and_its_needs():
    ray, cluster = connected()
    assert cluster.result(cluster.submit(math.hypot, 3, 4)) == 5.0
    assert ray.options == [
        {"num_cpus": 1, "num_gpus": 0, "resources": {}, "max_retries": RETRIES, "name": "hypot"}
    ]  # fmt: skip
    cluster.submit(math.hypot, 3, needs=TaskNeeds(2, ("a100",)))
    assert (ray.options[1]["num_gpus"], ray.options[1]["resources"]) == (2, {"a100": 1})


@pytest.mark.parametrize("threads", [None, "3"])
def test_tasks_have_as_many_threads_as_the_command(monkeypatch, threads):
    """Ray's workers have one thread each unless another format is requested."""
    monkeypatch.setenv(THREADS, threads or "")
    if threads is None:
        monkeypatch.delenv(THREADS)
    _, cluster = connected()
    monkeypatch.setenv(THREADS, "1")
    assert cluster.result(cluster.submit(os.environ.get, THREADS)) == threads


def test_a_task_raises_what_it_raised_there():
    _, cluster = connected()
    with pytest.raises(ValueError, match="math domain"):
        cluster.result(cluster.submit(math.sqrt, -1.0))
    with pytest.raises(RayTaskError):  # what ended it is no exception of ours
        cluster.result(Reference(error=RayTaskError("unknown")))


def test_a_worker_that_is_lost_again_and_again_is_told_from_a_finding():
    _, cluster = connected(lost=True)
    with pytest.raises(WorkerLost) as caught:
        cluster.result(cluster.submit(math.sqrt, 1.0))
    assert (caught.value.slug, caught.value.exit_code) == ("cluster-worker-lost", 3)


def test_a_process_of_ray_that_ends_is_no_finding():
    """No task can run then; taken for a check that is unresolved, a search would go on and ask in vain."""
    _, cluster = connected()
    with pytest.raises(EngineMissing) as caught:
        cluster.result(Reference(error=LocalRayletDiedError("the raylet died")))
    assert not isinstance(caught.value, WorkerLost)
    assert (caught.value.slug, caught.value.exit_code) == ("cluster-failed", 3)
    assert "LocalRayletDiedError: the raylet died" in caught.value.message


def test_a_head_that_is_gone_ends_the_wait_before_ray_ends_the_program(monkeypatch):
    """Ray ends it after a minute, with exit code 1, which says that something was found."""
    ray, cluster = connected()
    with socket.create_server(("127.0.0.1", 0)) as head:
        cluster._head = head.getsockname()
        late = Reference(error=GetTimeoutError())
        clock = iter(range(0, 1000, 15))
        monkeypatch.setattr("tensortriage_fleet.cluster.ray_cluster.time.monotonic", lambda: float(next(clock)))
        for _ in range(3):
            cluster._look()  # the head answers
        assert not cluster.lost
    with pytest.raises(EngineMissing) as caught:
        cluster.result(late)
    assert (caught.value.slug, cluster.lost) == ("cluster-head-lost", True)
    assert ray.fetched == 2  # 15 seconds after it was seen one waits on


def test_all_tasks_that_have_ended_are_ready_in_the_order_they_are_asked_for():
    _, cluster = connected()
    references = [Reference(ready=number != 1) for number in range(4)]
    assert cluster.ready(references) == [references[0], references[2], references[3]]


def test_cancelling_what_has_ended_is_fine():
    ray, cluster = connected()
    cluster.cancel("task")
    assert ray.cancelled == [("task", True)]


def test_a_cluster_of_this_machine_is_ended_and_its_files_are_removed(imported):
    ray = imported(StandIn())
    with open_cluster(ClusterSpec.parse("local:2")):
        begun = ray.begun
        assert Path(begun["_temp_dir"]).is_dir()
    assert (begun["address"], begun["num_cpus"], begun["include_dashboard"]) == ("local", 2, False)
    assert begun["_node_ip_address"] == "127.0.0.1"
    assert (begun["log_to_driver"], begun["configure_logging"]) == (False, False)
    assert ray.begun == "ended"
    assert not Path(begun["_temp_dir"]).exists()
    assert (os.environ["RAY_AUTH_MODE"], len(os.environ["RAY_AUTH_TOKEN"])) == ("token", 64)


def test_two_clusters_do_not_share_a_folder_and_the_first_has_the_shortest_path(imported, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ray = imported(StandIn())
    with open_cluster(ClusterSpec.parse("local:1")):
        first = ray.begun["_temp_dir"]
        with open_cluster(ClusterSpec.parse("local:1")):
            assert ray.begun["_temp_dir"] != first
        assert Path(first).is_dir()
    assert Path(first) == tmp_path / "r"


def test_a_cluster_that_is_there_is_asked_for_its_version(imported):
    ray = imported(StandIn())
    with open_cluster(ClusterSpec.parse("auto")) as cluster:
        assert (ray.begun["address"], "num_cpus" in ray.begun) == ("auto", False)
        assert [each["name"] for each in ray.options] == ["_version"]
        assert cluster.result(cluster.submit(str, 1)) == "1"
    assert os.environ["RAY_AUTH_MODE"] == "1"


@pytest.mark.parametrize("answer", [Reference("0.0.1"), Reference(error=RayTaskError(ImportError("no tensortriage")))])
def test_another_version_or_none_at_all_is_refused(imported, answer):
    class Other(StandIn):
        def get(self, reference):
            return super().get(answer)

    ray = imported(Other())
    with pytest.raises(UsageError) as caught, open_cluster(ClusterSpec.parse("auto")):
        pass
    assert caught.value.slug == "cluster-version"
    assert __version__ in caught.value.message
    assert ray.begun == "ended"


def test_a_worker_that_is_lost_is_no_other_version(imported):
    imported(StandIn(lost=True))
    with pytest.raises(WorkerLost), open_cluster(ClusterSpec.parse("auto")):
        pass


@pytest.mark.parametrize(
    ("error", "line"),
    [(ConnectionError("\nnobody there\nsecond line"), "nobody there"), (ConnectionError(), "ConnectionError")],
)
@pytest.mark.parametrize(("place", "cure"), [("auto", "ray status"), ("local:2", "TMPDIR")])
def test_a_cluster_that_does_not_answer_is_told_in_one_line(imported, error, line, place, cure):
    imported(StandIn(unreachable=error))
    with pytest.raises(UsageError) as caught, open_cluster(ClusterSpec.parse(place)):
        pass
    assert caught.value.slug == "cluster-unreachable"
    assert caught.value.message.endswith(f": {line}")
    assert cure in caught.value.cure


def test_without_ray_the_cure_is_told_and_its_reports_of_usage_are_off(imported):
    imported(None)
    with pytest.raises(EngineMissing) as caught, open_cluster(ClusterSpec.parse("local:2")):
        pass
    assert caught.value.slug == "ray-missing"
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert os.environ["RAY_AUTH_MODE"] == "token"
