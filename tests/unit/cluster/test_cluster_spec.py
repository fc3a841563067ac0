"""Clusters as users name them."""

import sys

import pytest

from tensortriage.cluster.cluster_spec import ClusterSpec, TaskNeeds, needs_of_engine
from tensortriage.cluster.ray_cluster import open_cluster
from tensortriage.errors import EngineMissing, UsageError


@pytest.mark.parametrize(
    ("text", "workers", "address", "needs"),
    [
        ("local:4", 4, "", TaskNeeds()),
        ("auto", 0, "auto", TaskNeeds()),
        ("ray://head:10001", 0, "ray://head:10001", TaskNeeds()),
        ("auto,gpus=1,tag=tensorrt,tag=a100", 0, "auto", TaskNeeds(1, ("tensorrt", "a100"))),
    ],
)
def test_what_is_understood(text, workers, address, needs):
    found = ClusterSpec.parse(text)
    assert (found.workers, found.address, found.needs) == (workers, address, needs)


@pytest.mark.parametrize(
    "text",
    ["", "local", "local:0", "local:x", "ray://head", "head:6379", "auto,gpus=x", "auto,tag=", "auto,", "ray://a b:1"],
)
def test_what_is_not(text):
    with pytest.raises(UsageError) as raised:
        ClusterSpec.parse(text)
    assert raised.value.slug == "cluster-malformed"


def test_an_engine_needs_its_tag_where_nodes_have_one_and_a_gpu_where_there_is_one():
    asked = TaskNeeds(0, ("big",))
    assert needs_of_engine("tensorrt", on_gpu=True, asked=asked, offered={"CPU": 8.0}) == TaskNeeds(0, ("big",))
    offered = {"CPU": 8.0, "GPU": 2.0, "tensorrt": 2.0}
    assert needs_of_engine("tensorrt", on_gpu=True, asked=asked, offered=offered) == TaskNeeds(1, ("big", "tensorrt"))
    assert needs_of_engine("openvino", on_gpu=False, asked=TaskNeeds(2), offered=offered) == TaskNeeds(2)


def test_without_ray_the_cure_is_told_and_its_reports_of_usage_are_off(monkeypatch):
    for name in (
        "RAY_USAGE_STATS_ENABLED",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO",
        "RAY_AUTH_MODE",
        "RAY_AUTH_TOKEN",
        "RAY_DEDUP_LOGS_SKIP_REGEX",
    ):
        monkeypatch.setenv(name, "1")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineMissing) as raised, open_cluster(ClusterSpec.parse("local:2")):
        pass
    assert raised.value.slug == "ray-missing"
    import os

    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
