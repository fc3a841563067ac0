"""The largest error of a healthy engine at tensors of a model, for every command that judges without a tolerance.

It is the noise floor of the target's format, or what the target's class of hardware is free to choose, where that is
known and costs more.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import Limit, half_at_most, near_limit, within_healthy, within_limit
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.diagnose.measurements.floors import floors_of
from tensortriage.diagnose.measurements.local_errors.local import local_errors
from tensortriage.diagnose.measurements.local_errors.representatives import suspicious
from tensortriage.diagnose.measurements.moved_inputs import errors_by_chance
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.evaluations import Healthy
from tensortriage.envelope.explanations import Explanation, ExplanationKind, Usual, explanations_of, freedoms_of_target
from tensortriage.envelope.floors import cost_of_freedoms
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
    floors = floors_of(inv, inv.model, feed, names, golden=golden, specs=inv.typed_by(golden, feed), what="the outputs")
    counts = {name: int(np.prod(golden[name].shape, dtype=np.int64)) for name in names}
    limits = {name: floors.limit(name, counts[name]) for name in names}
    beyond = [name for name in names if figures is None or _beyond(figures[name], limits[name])]
    chosen = cost_at(inv, feed, beyond, freedoms_here(inv))
    return limits | {name: floors.limit(name, counts[name], error) for name, error in chosen.items()}


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
    freedoms = freedoms_here(inv)
    if not freedoms or not inv.question.trusts_float64:
        return {}
    healthy = Healthy.of_types(typed, freedoms)
    try:
        stores = {name: inv.lab.values(each, typed, feed, list(golden)) for name, each in healthy.all.items()}
    except (EngineError, UsageError):
        return {}
    limits = {}
    for name, right in golden.items():
        arrays = {each: np.asarray(store[name]) for each, store in stores.items()}
        figures = {
            n: measure(right, array.astype(right.dtype)) for n, array in arrays.items() if array.shape == right.shape
        }
        limits[name] = healthy.limit(figures, right.size)
    return limits


def limits_by_chance(inv: Investigation, feed: Feed, figures: Mapping[str, Metrics]) -> dict[str, Limit]:
    """Return how far off outputs beyond their floors may be by chance: as the farthest of many draws of rounding.

    Args:
        inv: The investigation.
        feed: The feed.
        figures: The outputs that are beyond their floors.

    Returns:
        Limits by output; empty where chance does not explain all of them, or an op is wrong alone.

    Raises:
        EngineError: When the model cannot be evaluated, or the target does not run its ops one by one.
        ModelError: Likewise.
        UsageError: Likewise.
    """
    (chance,) = explanations_of(ExplanationKind.CHANCE)
    if inv.precision not in chance.formats or any(each.exact or each.nonfinite_mismatch for each in figures.values()):
        return {}
    drawn = errors_by_chance(inv, feed, [*figures], chance.draws)
    limits = {name: near_limit(max(errors, default=0.0)) for name, errors in drawn.items()}
    beyond = any(not within_limit(error_of(figure), limits[name]) for name, figure in figures.items())
    if beyond or suspicious(local_errors(inv, feed)):
        return {}
    return {name: half_at_most(Limit(limit, Basis.FORMAT)) for name, limit in limits.items()}


def _beyond(figure: Metrics, limit: Limit) -> bool:
    return not figure.exact and not within_healthy(error_of(figure), limit.error)


def cost_at(
    inv: Investigation, feed: Feed, names: Sequence[str], freedoms: Sequence[Explanation]
) -> Mapping[str, float]:
    """Return what freedoms cost at tensors when all of them are taken; nothing where that is not known."""
    if not names or not freedoms or not inv.question.trusts_float64:
        return {}
    try:
        return cost_of_freedoms(inv.lab, inv.model, feed, list(names), freedoms=freedoms, precision=inv.precision)
    except (EngineError, UsageError):  # an operator without an exact kernel: the floor alone counts
        return {}


def freedoms_here(inv: Investigation, usual: Usual | None = Usual.EXPECTED) -> tuple[Explanation, ...]:
    """Return what the target may choose at operators that the model has, of that what is so usual; None for all."""
    op_types = {node.op_type for node in inv.model.graph.nodes}
    return freedoms_of_target(inv.question.target, usual, op_types=op_types)


def may_be_taken(inv: Investigation) -> list[tuple[Explanation, ...]]:
    """Return the sets of freedoms of which the target may take one, those that allow least first.

    They are all that is expected of its class of hardware, or any single one where that is not known. Of functions of
    any operator nothing shows where they are taken.
    """
    if inv.hardware.has_habits:
        return [freedoms_here(inv)]
    return [(each,) for each in freedoms_here(inv, None) if each.operators]
