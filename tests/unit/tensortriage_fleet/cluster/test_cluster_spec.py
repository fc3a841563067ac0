"""Clusters as users name them."""

import pytest

from tensortriage.errors import UsageError
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec, TaskNeeds, needs_of_engine


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
