"""Outputs behind a decision (an ArgMax, a TopK, a suppression of boxes), compared in two steps.

First the decision: is the target's pick a valid one of scores within a healthy engine's error? Then the rest: the
reference continues *with the target's picks*, and its outputs are then the right ones for the target. So boxes in
another order, or a token that was a tie with all its consequences, are compared with the right values in that case, by
the same floors as any output, and picks that rounding changes do not inflate the floors.

Decisions that no output shows are read from the target by marking them. Where that moves the outputs, because the
engine then fuses other ops, its own decision stays unseen; picks of healthy engines are tried as well, valid ones only.
"""

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.ranked import RankedComparison, ScoredChoice, compare_extremes, compare_top_k
from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.compare.judgement.suppressed import SuppressionLimits, compare_suppressed
from tensortriage.compare.measured import compare_all
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.registry import is_foreign
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.envelope.elements import Radii, score_radii
from tensortriage.envelope.evaluations import Healthy
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED
from tensortriage.envelope.floors import floors_of
from tensortriage.envelope.setting import Floors
from tensortriage.errors import EngineError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.inspect.decisions import (
    Decision,
    DecisionKind,
    decided_values,
    decisions_behind,
    shown_as,
)
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import BEFORE_PREFIX, needed_for
from tensortriage.model.transforms.pin_decisions import pinned
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MemoryStore, TensorStore

Arrays = Mapping[str, np.ndarray]
Asked = tuple[EngineSpec, Model]


@frozen_dataclass
class Decided:
    """The target's decisions on one feed, and the outputs that depend on them.

    Attributes:
        fp32: Every decision, judged by a healthy fp32 engine's error in the scores, by the name of its indices.
        target: Every decision, judged by the error of a healthy engine in the target's format.
        behind: Output to the decisions it depends on.
        metrics: Outputs against the reference that takes the target's decisions.
        floors: Noise floors of these.
    """

    fp32: Mapping[str, RankedComparison]
    target: Mapping[str, RankedComparison]
    behind: Mapping[str, tuple[str, ...]]
    metrics: Mapping[str, Metrics]
    floors: Floors

    def valid(self, output: str, *, rounded: bool = False) -> bool:
        """Return whether every decision behind an output is valid, at fp32's noise or at the target's format's."""
        judged = self.target if rounded else self.fp32
        return not any(judged[name].mismatches for name in self.behind[output])

    def worst(self, output: str) -> tuple[str, RankedComparison]:
        """Return the decision behind an output that is farthest from the reference's, at the target's noise.

        It is counted together with those of its unit, the tokens of all steps for example.
        """
        judged = {name: self.target[name] for name in self.behind[output]}
        name = max(judged, key=lambda value: (judged[value].share, judged[value].differing))
        others = [each for value, each in judged.items() if value != name and each.unit == judged[name].unit]
        return name, sum(others, start=judged[name])


@frozen_dataclass
class Picks:
    """The decisions of both sides.

    Attributes:
        decisions: In topological order.
        ours: The reference's indices, by the name of the value.
        theirs: The target's.
        reach: The values that depend on each.
        unsure: Values whose indices were marked on the target, where marking moved its outputs: its decision without
            marks may differ.
    """

    decisions: tuple[Decision, ...]
    ours: Arrays
    theirs: Arrays
    reach: Mapping[str, frozenset[str]]
    unsure: tuple[str, ...] = ()


def follow(inv: Investigation, feed: Feed, *, golden: Arrays, outputs: Arrays, ask: Asked | None) -> Decided | None:
    """Judge the target's decisions and compare the values that follow from them.

    Args:
        inv: The investigation; its model, reference and target are asked.
        feed: The feed.
        golden: Values of the reference, by name.
        outputs: The target's values of the same names.
        ask: Engine and model that can show decisions behind the outputs; None when there is none.

    Returns:
        None when the outputs do not depend on decisions, or the target's decision cannot be known.
    """
    names = [name for name in golden if name in outputs and inv.model.graph.producer(name) is not None]
    try:
        picks = picks_of(inv, feed, names, golden=golden, outputs=outputs, ask=ask)
        if picks is None:
            return None
        reached = frozenset().union(*picks.reach.values())
        behind = {name: outputs[name] for name in names if name in reached}
        found = _followed(inv, feed, picks, golden, behind)
        if _alone(inv, feed) and any(each.mismatches for each in found.fp32.values()):
            return None  # it may be the reference that is no such model
        if not picks.unsure or _unexplained(found) <= 1.0:
            return found
        others = [_followed(inv, feed, other, golden, behind) for other in _healthy_picks(inv, feed, picks)]
        return min([found, *others], key=_unexplained)
    except EngineError:
        return None


def _unexplained(decided: Decided) -> float:
    """Return the largest error of an output over the cost of the target's format, once decided."""
    ratios = [
        (ratio_of(error_of(figure), decided.floors.target.get(name)) or 0.0)
        if decided.valid(name, rounded=True)
        else math.inf
        for name, figure in decided.metrics.items()
    ]
    return max(ratios, default=0.0)


def _healthy_picks(inv: Investigation, feed: Feed, picks: Picks) -> Iterator[Picks]:
    """Yield the decisions of healthy engines and of the reference, as replacements for the target's.

    Of valid, unseen picks, the likely ones of the target are those that make its outputs.
    """
    model = inv.model
    specs = value_specs(model, {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()})
    healthy = Healthy.of(model, inv.precision, kept=inv.question.kept)
    members = healthy.format or healthy.order
    fused = [
        EngineSpec(each.name, {**each.options, "fused": "true"})
        for each in members.values()
        if each.name == CORRECTLY_ROUNDED.name
    ]
    yield dataclasses.replace(picks, theirs={**picks.theirs, **{name: picks.ours[name] for name in picks.unsure}})
    for spec in (*members.values(), *fused):
        with contextlib.suppress(EngineError, UsageError):
            made = inv.lab.values(spec, model, feed, picks.unsure, specs=specs)
            own = {name: made[name].reshape(picks.theirs[name].shape).astype(np.int64) for name in made.names()}
            yield dataclasses.replace(picks, theirs={**picks.theirs, **own})


def picks_of(
    inv: Investigation, feed: Feed, names: Sequence[str], *, golden: Arrays, outputs: Arrays, ask: Asked | None
) -> Picks | None:
    """Return the decisions of both sides; None when nothing is decided, or the target's decisions are unknown."""
    graph = inv.model.graph
    decisions = decisions_behind(graph, names)
    if not decisions:
        return None
    specs = value_specs(inv.model, {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()})
    decisions = tuple(each for each in decisions if _is_float(specs.get(each.scores)))
    shown = {each.value: shown_as(graph, each, names) for each in decisions}
    hidden = [value for value, name in shown.items() if not name]
    if not decisions or (hidden and ask is None):
        return None
    unseen = [value for value, name in shown.items() if name != value]
    ours = inv.lab.values(_shows(inv, feed), inv.model, feed, unseen, specs=specs)
    reach = {each.value: decided_values(graph, each) for each in decisions}
    neighbours = [name for name in names if any(name in reach[value] for value in hidden)]
    marked: TensorStore = MemoryStore({})
    if ask and hidden:
        marked = inv.lab.values(*ask, feed, [*hidden, *neighbours], specs=specs)
    moved = any(not np.array_equal(marked[name], outputs[name], equal_nan=marked[name].dtype.kind == "f")
                for name in neighbours if name in marked)  # fmt: skip
    mine, theirs = {}, {}
    for each in decisions:
        name = shown[each.value]
        own = golden[name] if name == each.value else ours[each.value]
        shape = (-1, 3) if each.kind is DecisionKind.BOXES else own.shape
        mine[each.value] = (golden[name].reshape(shape) if name else own).astype(np.int64)
        theirs[each.value] = (outputs[name] if name else marked[each.value]).reshape(shape).astype(np.int64)
    return Picks(decisions, mine, theirs, reach, tuple(hidden) if moved else ())


def _followed(inv: Investigation, feed: Feed, picks: Picks, golden: Arrays, outputs: Arrays) -> Decided:
    graph, fed = inv.model.graph, {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()}
    model = pinned(inv.model, picks.theirs)
    operands = list(dict.fromkeys(name for each in picks.decisions for name in each.operands))
    made = [name for name in operands if graph.producer(name) is not None and name not in graph.constants]
    before = {f"{BEFORE_PREFIX}{each.value}": each.value for each in picks.decisions}
    limits = [name for each in picks.decisions for name in each.limits if name]
    made_limits = [name for name in limits if name not in graph.constants and name not in feed.tensors]
    wanted = list(dict.fromkeys([*outputs, *made, *made_limits, *before]))
    shown = inv.lab.values(_shows(inv, feed), model, feed, wanted, specs=value_specs(model, fed))
    run = {name: np.asarray(shown[name]) for name in shown.names()}
    values = {**feed.tensors, **run} | {n: graph.weight(n) for n in [*operands, *limits] if n in graph.constants}
    names_wanted = list(dict.fromkeys([*outputs, *made]))
    short = needed_for(model, names_wanted)
    specs = value_specs(short, {**fed, **{name: ValueSpec.of(name, run[name]) for name in names_wanted}})
    setting = inv.setting(feed, short)
    radii = score_radii(setting, {name: values[name] for name in operands}, specs=specs)
    behind = {n: tuple(each.value for each in picks.decisions if n in picks.reach[each.value]) for n in outputs}
    fp32, target, alike = _judged(picks, values, {value: run[name] for name, value in before.items()}, radii)
    same = [name for name in outputs if all(alike[value] for value in behind[name])]
    if _alone(inv, feed):  # then it says nothing of the target's decisions but what they are
        same = [name for name in outputs if not any(shown_as(graph, each, [name]) for each in picks.decisions)]
    expected = {name: golden[name] if name in same else run[name] for name in outputs}
    found = compare_all(outputs.items(), MemoryStore(expected))
    store = MemoryStore({name: run[name] for name in outputs})
    names, what = list(outputs), "the outputs once decided"
    floors = floors_of(setting, names, judged=setting.of_reference(store, names), specs=specs, what=what)
    decided = {name: values for name, values in behind.items() if name in found.metrics}
    return Decided(fp32, target, decided, {name: found.metrics[name] for name in decided}, floors)


def _alone(inv: Investigation, feed: Feed) -> bool:
    return is_foreign(inv.question.reference.name) and inv.golden.are_outputs_alone(feed)


def _shows(inv: Investigation, feed: Feed) -> EngineSpec:
    """Return the engine that shows the scores of decisions: the reference, if it shows more than outputs."""
    return PLAIN if _alone(inv, feed) else inv.question.reference


def _judged(
    picks: Picks, values: Arrays, again: Arrays, radii: Radii
) -> tuple[dict[str, RankedComparison], dict[str, RankedComparison], dict[str, bool]]:
    """Judge every decision at both radii, and return which equal the reference's.

    After a decision that is not, the reference's own later ones are those it made when it went on with the target's.
    """
    fp32: dict[str, RankedComparison] = {}
    target: dict[str, RankedComparison] = {}
    alike: dict[str, bool] = {}
    for each in picks.decisions:
        earlier = [value for value in alike if not picks.reach[value].isdisjoint(each.operands)]
        on_the_way = all(alike[value] for value in earlier)
        ours = picks.ours[each.value] if on_the_way else again[each.value]
        theirs = picks.theirs[each.value]
        fp32[each.value] = judge_decision(each, ours, theirs, values, radii.fp32)
        target[each.value] = judge_decision(each, ours, theirs, values, radii.target)
        alike[each.value] = on_the_way and bool(np.array_equal(ours, theirs))
    return fp32, target, alike


def judge_decision(
    decision: Decision, reference: np.ndarray, target: np.ndarray, values: Arrays, radii: Arrays
) -> RankedComparison:
    """Judge one decision of the target.

    Args:
        decision: The decision, with its values.
        reference: The reference's indices.
        target: The target's.
        values: The reference's values by name: the decision's operands and limits.
        radii: How far the operands may be off, by name.
    """
    scores, radius = np.asarray(values[decision.scores]), radii[decision.scores]
    if decision.kind in (DecisionKind.EXTREME, DecisionKind.TOP_K):
        compare = compare_extremes if decision.kind is DecisionKind.EXTREME else compare_top_k
        choice = ScoredChoice(decision.axis, radius, decision.largest, decision.ordered)
        return compare(reference, target, scores, choice)
    most, overlap, score = (float(np.ravel(values[name])[0]) if name else None for name in decision.limits)
    return compare_suppressed(
        reference,
        target,
        np.asarray(values[decision.boxes]),
        scores,
        limits=SuppressionLimits(int(most or 0), overlap or 0.0, score, decision.corners),
        radii=(float(radius.max(initial=0.0)), float(radii[decision.boxes].max(initial=0.0))),
    )


def _is_float(spec: ValueSpec | None) -> bool:
    return spec is None or spec.dtype is None or spec.dtype.is_float
