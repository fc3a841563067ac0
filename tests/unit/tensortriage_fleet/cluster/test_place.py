"""A cluster as commands know it."""

from tensortriage_fleet.cluster.cluster_spec import TaskNeeds
from tensortriage_fleet.cluster.place import named


def test_what_is_named_keeps_what_commands_need():
    assert named("local:2,tag=tensorrt").spec.needs == TaskNeeds(tags=("tensorrt",))
