"""Clusters as users name them."""

import pytest

from tensortriage.errors import UsageError
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec, TaskNeeds


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
