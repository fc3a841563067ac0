"""The largest error of a healthy engine at tensors of a model, for every command that judges without a tolerance.

It is the noise floor of the target's format, or what the target's class of hardware is free to choose, where that is
known and costs more.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import Limit, healthy_limit, within_healthy
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.diagnose.measurements.floors import floors_of
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.allowances import whole_model
from tensortriage.envelope.floors import PREDICTED, either_side
from tensortriage.envelope.freedoms import Freedom, expected_of
from tensortriage.envelope.hardware import Hardware
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
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
    for name, error in chosen_by_hardware(inv, feed, beyond).items():
        limits[name] = healthy_limit(counts[name], floors.fp32.get(name, 0.0), predicted.get(name), error)
    return limits


def typed_limits(inv: Investigation, feed: Feed, typed: Model, golden: Mapping[str, np.ndarray]) -> dict[str, Limit]:
    """Return the limits of the outputs of a model typed in a narrow format, on hardware whose choices are known.

    Sums whose results are stored in float32 stay in float32; engines of the target's class choose how others are kept.

    Args:
        inv: The investigation.
        feed: The feed.
        typed: The model whose types say what is computed in which format.
        golden: The right values of its outputs.

    Returns:
        The limits by output; empty where the hardware is not known or the model cannot be evaluated.
    """
    freedoms = expected_freedoms(inv)
    if not freedoms or not inv.question.trusts_float64:
        return {}
    options = {"accumulated": "narrow"}
    for freedom in freedoms:
        options |= freedom.options
    try:
        stores = [inv.recorded(each, typed, feed, list(golden))[0] for each in either_side(typed, "", options).values()]
    except (EngineError, UsageError):
        return {}
    limits = {}
    for name, right in golden.items():
        arrays = [np.asarray(store[name]) for store in stores]
        errors = [error_of(measure(right, array.astype(right.dtype))) for array in arrays if array.shape == right.shape]
        limits[name] = healthy_limit(right.size, 0.0, None, max(errors, default=0.0))
    return limits


def _beyond(figure: Metrics, limit: Limit) -> bool:
    return not figure.exact and not within_healthy(error_of(figure), limit.error)


def chosen_by_hardware(inv: Investigation, feed: Feed, names: Sequence[str]) -> Mapping[str, float]:
    """Return what the target's hardware costs at tensors when it takes all of its freedoms; nothing if unknown."""
    freedoms = expected_freedoms(inv)
    if not names or not freedoms or not inv.question.trusts_float64:
        return {}
    try:
        return whole_model(inv, inv.model, feed, list(names), freedoms=freedoms, precision=inv.precision)
    except (EngineError, UsageError):  # an operator without an exact kernel: the floor alone counts
        return {}


def expected_freedoms(inv: Investigation) -> tuple[Freedom, ...]:
    """Return what the target's hardware is expected to choose at operators that the model has; nothing if unknown."""
    op_types = {node.op_type for node in inv.model.graph.nodes}
    expected = expected_of(Hardware.of(inv.question.target), inv.precision)
    return tuple(freedom for freedom in expected if freedom.concerns(op_types))
