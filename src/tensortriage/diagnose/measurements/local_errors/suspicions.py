"""Which nodes look guilty before anything was cut? Those whose local error stands out of their floor."""

from collections.abc import Mapping

from tensortriage.diagnose.measurements.local_errors.local import local_errors, suspects
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed


def suspicions(inv: Investigation, feed: Feed) -> Mapping[str, float]:
    """Return local error over floor for the nodes in which it stands out.

    Returns:
        By node name; empty when the target cannot run the exploded model.
    """
    found: dict[str, float] = {}
    try:
        worst_first = suspects(local_errors(inv, feed))
    except EngineError:
        return {}
    for value, ratio in worst_first:
        if (producer := inv.model.graph.producer(value)) is not None:
            found.setdefault(producer.name, ratio)
    return found
