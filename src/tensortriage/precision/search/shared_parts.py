"""Parts shared by both precision searches: the goal, the emulation, and the facts about kept nodes."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.reference_checks import require_numbers
from tensortriage.envelope.limits import of_goal
from tensortriage.errors import DataError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model
from tensortriage.precision.goal import (
    ErrorGoal,
    GoalSample,
    MetricGoal,
    PrecisionGoal,
    ToleranceGoal,
    mean_metric,
)
from tensortriage.precision.plan import Keeping
from tensortriage.precision.reasons import reason_for
from tensortriage.precision.search.request import GoalRequest
from tensortriage.precision.selection.emulation import Emulation
from tensortriage.precision.selection.influence import Influences
from tensortriage.precision.selection.switchable_model import Choosable, SwitchableModel, stage_of
from tensortriage.precision.selection.typed_candidates import EngineSetup, TypedCandidates
from tensortriage.runs.questions.golden_values import GoldenValues
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.text import error_size, magnitude, times

OutputFloors = Callable[[Feed, Sequence[str]], Mapping[str, float]]
"""Measures the fp32 noise floors of outputs on one feed, as relative errors."""


def goal_of(
    request: GoalRequest, floors_of: OutputFloors, samples: Sequence[GoalSample], precision: Precision
) -> PrecisionGoal:
    """Return the goal for the outputs.

    Args:
        request: The goal in the user's words.
        floors_of: Measures the fp32 noise floors of outputs, where the goal follows from them.
        samples: The feeds with the reference's outputs.
        precision: The lower format.

    Raises:
        UsageError: When the reference itself does not reach it (``precision-goal-unreachable``), or there is no goal,
            and the format has no rounding error of its own to take as one (``precision-goal-missing``).
    """
    names = list(samples[0].outputs)
    if request.metric is not None:
        own = mean_metric(request.metric, samples, [sample.outputs for sample in samples])
        if math.isnan(own):
            raise DataError(
                f"{request.metric.words} is NaN on the reference's outputs",
                slug="script-not-number",
                cure="check the samples, or let the metric return a number for them",
            )
        least = own if request.metric_min is None else request.metric_min
        if own < least:
            raise UsageError(
                f"the reference itself has {magnitude(own, 6)} by {request.metric.words}, less than "
                f"{magnitude(least, 6)}",
                slug="precision-goal-unreachable",
                cure="lower --metric-min, or leave it out to require the reference's own score",
            )
        return MetricGoal(request.metric, least, f"{request.metric.words} >= {magnitude(least, 6)}")
    if request.tolerance is not None:
        return ToleranceGoal(request.tolerance, f"tolerance {request.tolerance!r}")
    if request.sqnr_db is not None:
        limit = 10.0 ** (-request.sqnr_db / 20.0)
        return ErrorGoal(dict.fromkeys(names, limit), f"SQNR >= {request.sqnr_db:g} dB")
    if precision is Precision.INT8 and request.floor_factor is None:
        raise UsageError(
            "no goal is given, and int8 has no expected error: it depends on the scales",
            slug="precision-goal-missing",
            cure="give a goal: --sqnr DB, --atol, --rtol, or --metric NAME",
        )
    floors = _floors(floors_of, samples, names)
    if request.floor_factor is not None:
        factor = request.floor_factor
        return ErrorGoal(
            {name: factor * floor for name, floor in floors.items()}, f"error <= {factor:g} x the fp32 noise floor"
        )
    least_error = of_goal(0.0, precision)
    return ErrorGoal(
        {name: of_goal(floor, precision) for name, floor in floors.items()},
        f"error <= {magnitude(least_error, 2)}, {MATCH_FACTOR:g} roundings to {precision.value}",
    )


def _floors(floors_of: OutputFloors, samples: Sequence[GoalSample], names: Sequence[str]) -> dict[str, float]:
    floors = dict.fromkeys(names, 0.0)
    for sample in samples[:2]:
        found = floors_of(sample.feed, names)
        floors = {name: max(floor, found.get(name, 0.0)) for name, floor in floors.items()}
    return floors


def samples_of(source: GoldenValues) -> tuple[GoalSample, ...]:
    """Return the feeds with the reference's outputs."""
    names = [spec.name for spec in source.question.model.outputs]
    found = []
    for feed in source.question.feeds:
        golden = source.outputs(feed)
        found.append(GoalSample(feed, {name: np.asarray(golden[name]) for name in names if name in golden}))
    require_numbers((sample.feed.name, sample.outputs) for sample in found)
    return tuple(found)


def open_typed(
    bench: EngineSetup,
    model: Model,
    precision: Precision,
    specs: Mapping[str, ValueSpec],
    *,
    typed: bool,
    seconds: float | None,
) -> tuple[SwitchableModel, Emulation, TypedCandidates]:
    """Return the nodes to choose from in a model, its emulation (to be closed), and its candidates.

    Args:
        bench: Runs them.
        model: The model.
        precision: The lower format.
        specs: Types of its values.
        typed: Whether candidates are typed models.
        seconds: Time to measure the effect of each node alone; None for no limit.
    """
    stage = stage_of(model, precision, specs, typed=typed)
    emulation = stage.emulation(bench.samples, bench.goal, lab=bench.lab, seconds=seconds)
    return stage, emulation, TypedCandidates(stage, bench=bench)


def recorded_on(source: GoldenValues, feed: Feed) -> Callable[[Collection[str]], Mapping[str, np.ndarray]]:
    """Return a reader of the reference's values on one feed, inner tensors included."""
    golden = source.of(feed)

    def recorded(wanted: Collection[str]) -> Mapping[str, np.ndarray]:
        fed = {value: array for value, array in feed.tensors.items() if value in wanted}
        return {value: np.asarray(golden[value]) for value in wanted if value in golden} | fed

    return recorded


def keepings(
    stage: Choosable,
    kept: Sequence[str],
    found: Influences | None,
    recorded: Callable[[Collection[str]], Mapping[str, np.ndarray]],
    *,
    limited: bool,
    scaled: bool = False,
) -> tuple[Keeping, ...]:
    """Return the kept nodes with the reasons that the values give, which count only where no scales move them."""
    graph = stage.model.graph
    made = []
    for name in kept:
        node = graph.node(name)
        values = recorded({*node.uses, *node.outputs})
        alone = found.ratio(name) if found is not None and name in found.alone else None
        reason = "" if scaled else reason_for(node, values, graph, stage.precision)
        made.append(
            Keeping(
                name,
                node.op_type,
                reason or _plain_reason(alone, limited),
                alone=alone if limited else None,
                error_alone=None if limited else alone,
                origin=graph.origin(name),
            )
        )
    return tuple(made)


def untried(graph: Graph, names: Sequence[str]) -> tuple[Keeping, ...]:
    """Return nodes that are kept because a search was interrupted before it knew which ones do not have to be."""
    return tuple(
        Keeping(name, graph.node(name).op_type, "interrupted before anything smaller was seen to be enough")
        for name in names
    )


def _plain_reason(alone: float | None, limited: bool) -> str:
    if alone is None:
        return "needed together with others"
    if math.isinf(alone):
        return "its rounding makes NaN or Inf further on"
    share = f"{times(alone)} the limit" if limited else f"a relative error of {error_size(alone)}"
    return f"its rounding alone leaves {share} at the outputs"


def casts_in(model: Model) -> int:
    """Return the number of Cast nodes."""
    return sum(node.op_type == "Cast" for node in model.graph.nodes)


def in_order(model: Model, nodes: Collection[str]) -> tuple[str, ...]:
    """Return nodes in topological order."""
    chosen = set(nodes)
    return tuple(node.name for node in model.graph.nodes if node.name in chosen)
