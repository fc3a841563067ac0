"""The largest error of a healthy engine at tensors of a model, for every command that judges without a tolerance.

It is the noise floor of the target's format, or what the target's class of hardware is free to choose, where that is
known and costs more.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import Limit, healthy_limit, within_healthy
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.measurements.floors import floors_of
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.allowances import whole_model
from tensortriage.envelope.floors import PREDICTED
from tensortriage.envelope.freedoms import expected_of
from tensortriage.envelope.hardware import Hardware
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.values.store import TensorStore


def output_limits(
    inv: Investigation,
    feed: Feed,
    names: Sequence[str],
    *,
    golden: TensorStore,
    figures: Mapping[str, Metrics] | None = None,
) -> dict[str, Limit]:
    """Return the limits of tensors of the investigation's model on one feed.

    Args:
        inv: The investigation.
        feed: The feed.
        names: The tensors.
        golden: The reference's values of them.
        figures: Figures that are to be judged; what the hardware chooses is then evaluated only where one of them is
            beyond its floor.
    """
    floors = floors_of(inv, inv.model, feed, names, golden=golden, specs=inv.specs(feed), what="the outputs")
    predicted = floors.target if inv.precision in PREDICTED else {}
    counts = {name: int(np.prod(golden[name].shape, dtype=np.int64)) for name in names}
    limits = {name: healthy_limit(counts[name], floors.fp32.get(name, 0.0), predicted.get(name)) for name in names}
    beyond = [name for name in names if figures is None or _beyond(figures[name], limits[name])]
    for name, error in _chosen(inv, feed, beyond).items():
        limits[name] = healthy_limit(counts[name], floors.fp32.get(name, 0.0), predicted.get(name), error)
    return limits


def _beyond(figure: Metrics, limit: Limit) -> bool:
    return not figure.exact and not within_healthy(error_of(figure), limit.error)


def _chosen(inv: Investigation, feed: Feed, names: Sequence[str]) -> Mapping[str, float]:
    """Return what the target's hardware costs at tensors when it takes all of its freedoms; nothing if unknown."""
    op_types = {node.op_type for node in inv.model.graph.nodes}
    expected = expected_of(Hardware.of(inv.question.target), inv.precision)
    freedoms = [freedom for freedom in expected if freedom.concerns(op_types)]
    if not names or not freedoms or not inv.question.trusts_float64:
        return {}
    try:
        return whole_model(inv, inv.model, feed, list(names), freedoms=freedoms, precision=inv.precision)
    except (EngineError, UsageError):  # an operator without an exact kernel: the floor alone counts
        return {}
