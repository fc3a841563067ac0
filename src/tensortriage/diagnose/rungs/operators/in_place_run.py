"""Where does the target's own run go wrong? For targets whose ops cannot run alone, such as files that run as they are.

The candidates are shown values that are wrong while all shown values that they are made of are right: the target itself
had right operands there, so its error originates in the nodes between. Injected into the reference's run, it must make
at least half of the failure. Where several ops that have weights lie between, any of them may be wrong, and all are
named, unless these are all the ops of the model.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import ratio_of
from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.judgement.within import beyond_fp32, is_decisive
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.function_pieces import may_round_inside
from tensortriage.diagnose.measurements.local_errors.injection import injected_runs
from tensortriage.diagnose.measurements.suggested_commands import layers_command
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.confidence import FUSED, ROUNDS_INSIDE, blamed
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.capabilities import Observes
from tensortriage.engines.registry import resolve
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.envelope.limits import OPS_IN_FP32
from tensortriage.envelope.ops import OpLimits, op_limits
from tensortriage.errors import EngineError
from tensortriage.model.cutting.between import between
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.values.text import enumeration, error_size, over_floor, percent

QUESTION = "where does the target's own run go wrong?"


@rung(
    QUESTION,
    reads=("results", "floors", "in_context", "in_context_moved", "local"),
    cost="a run of the reference",
    ends=(VerdictKind.LOCAL_FAULT, VerdictKind.INCONCLUSIVE),
)
def in_place_run(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Of shown values with right operands, does a wrong one make the failure?

    Skipped for ops that could run alone, and where showing values changed the error by more than a healthy engine may.
    """
    target = inv.question.target
    engine = resolve(target).engine
    watched = engine.observing(target.options) if isinstance(engine, Observes) else None
    alone = evidence.local is not None and bool(evidence.local.metrics)
    if alone or not evidence.in_context or watched is None or _is_another(evidence):
        return None
    try:
        allowed = _allowed(inv, evidence)
        born, explained = _making_it(inv, evidence, allowed, _born_wrong(inv, evidence, allowed))
    except EngineError as error:
        inv.record.answered(QUESTION, f"unknown: {error.message}")
        return None
    if not born:
        inv.record.answered(QUESTION, "at no value that the engine shows: each wrong one has wrong operands")
        return None
    first = next(iter(born))
    more = f" and {len(born) - 1} more" if len(born) > 1 else ""
    share = f"injecting {'them' if more else 'it'} explains {percent(explained)} of the output error"
    inv.record.answered(
        QUESTION,
        f"at '{first}'{more}: wrong, though its operands are right; {share}",
        born={value: list(nodes) for value, nodes in born.items()},
        explained=explained,
    )
    if not is_decisive(explained):
        return None
    result = evidence.worst_feed
    outputs = [ratio_of(error, result.floors.target.get(name)) for name, error in result.errors.items()]
    if may_round_inside(inv, [*outputs, *(_floor_ratio(evidence, value) for value in born)]):
        return Conclusion(
            VerdictKind.INCONCLUSIVE,
            ROUNDS_INSIDE,
            f"{target} goes wrong at '{first}'{more}, made by {' + '.join(born[first])}, by more than rounding "
            f"results to {inv.precision.value} costs, and no more than a kernel that also rounds inside "
            f"may ({MATCH_FACTOR:g}x)",
        )
    culprits = [each for value, nodes in born.items() for each in _culprits(inv, evidence, value, nodes)]
    ops = [f"{each.op_type} '{each.node}'" for each in culprits if each.value == first]
    fused = f", which it computes as one: {' + '.join(born[first])}" if len(born[first]) > 1 else ""
    which = f"{ops[0]} is" if len(ops) == 1 else f"One of {enumeration(ops)} is"
    return Conclusion(
        VerdictKind.LOCAL_FAULT,
        blamed(explained, at_most=FUSED),
        f"{which} wrong in the own run of {target}"
        f"{fused if len(ops) == 1 else ', which shows no value between them'}: {culprits[0].reason}; {share}",
        culprits=culprits[:10],
        next=[layers_command(inv.question)],
    )


def _is_another(evidence: Evidence) -> bool:
    """Return whether the run that shows its values fails in another way than the deployed one: by more, or by less."""
    floors, deployed = evidence.floors.target if evidence.floors else {}, evidence.worst_feed.errors
    for name in evidence.in_context_moved:
        shown = evidence.error(name)
        if shown is None or beyond_fp32(ratio_of(abs(shown - deployed[name]), floors.get(name))):
            return True
    return False


def _allowed(inv: Investigation, evidence: Evidence) -> OpLimits:
    """Return the allowed errors of shown values, with the freedoms that the target takes."""
    if evidence.floors is None:
        return OpLimits({})
    made_by: dict[str, frozenset[str]] = {}  # by value: errors of all that it is made of are in it
    for node in inv.model.graph.nodes:
        types = frozenset({node.op_type}).union(*(made_by.get(name, frozenset()) for name in node.uses))
        made_by |= dict.fromkeys(node.outputs, types)
    errors = {value: error for value in evidence.in_context or {} if (error := evidence.error(value)) is not None}
    what = "the values that the target shows"
    setting = inv.setting(evidence.feed)
    return op_limits(
        setting, evidence.floors, errors, op_types=lambda value: made_by.get(value, frozenset()), what=what
    )


def _floor_ratio(evidence: Evidence, value: str) -> float | None:
    return ratio_of(evidence.error(value), evidence.floors.target.get(value) if evidence.floors else None)


def _born_wrong(inv: Investigation, evidence: Evidence, allowed: OpLimits) -> dict[str, tuple[str, ...]]:
    """Return shown values that are wrong with right operands, and the nodes between, in topological order."""
    figures, graph = evidence.in_context or {}, inv.model.graph
    times = (
        1.0 if inv.precision in ROUNDED else OPS_IN_FP32
    )  # in a format floors are what rounding is predicted to cost
    wrong = {value for value in figures if (allowed.over(value, evidence.error(value)) or 0.0) > times}
    known = {*figures, *evidence.feed.tensors}
    pieces = {value: between(graph, value, known) for value in inv.question.values if value in figures}
    made_of = {value: {name for node in nodes for name in node.uses} for value, nodes in pieces.items()}
    weighted = len(_weighted(graph, graph.nodes))
    found = {}
    for value, nodes in pieces.items():
        users = [other for other, operands in made_of.items() if value in operands]
        if value not in wrong or (users and not wrong.intersection(users)):
            continue  # where all that is made of it is right, something else is shown under its name
        candidates = len(_weighted(graph, nodes))
        if nodes and not wrong.intersection(made_of[value]) and (candidates < 2 or candidates < weighted):
            found[value] = tuple(node.name for node in nodes)
    return found


def _making_it(
    inv: Investigation,
    evidence: Evidence,
    allowed: OpLimits,
    born: dict[str, tuple[str, ...]],
) -> tuple[dict[str, tuple[str, ...]], float]:
    """Return the values that make the failure, with the nodes between, and the share of it that they make.

    They are the ones that are wrong with right operands, if those do, and of these the ones that one op makes, if they
    do alone. Else, and where a format hides the departure, the first value with which all departing values up to it, as
    the target has them, make half of the failure more than without it. A value with an error of the target's choosing
    does not depart.
    """
    figures, graph = evidence.in_context or {}, inv.model.graph
    shown = [value for value in inv.question.values if value in figures and value not in allowed.chosen]
    departing = [value for value in shown if (_floor_ratio(evidence, value) or 0.0) > 1.0]
    values = list(dict.fromkeys([*departing, *born]))
    if not values:
        return born, 0.0
    run = inv.lab.values(inv.question.target, inv.model, evidence.feed, values, specs=inv.golden.specs(evidence.feed))
    own = {name: np.asarray(run[name]) for name in run.names()}
    with injected_runs(inv, evidence.feed, own, fixed=False) as runs:

        def made_by(names: Sequence[str]) -> float:
            return runs.explained(runs.with_results(own, [name for name in names if name in own])) if names else 0.0

        alone = {value: each for value, each in born.items() if len(_weighted(graph, map(graph.node, each))) < 2}
        explained = made_by(list(alone))
        if is_decisive(explained):
            born = alone
        elif len(alone) < len(born):
            explained = made_by(list(born))
        if is_decisive(explained):
            departing = departing[: departing.index(next(iter(born)))]
        share = made_by(departing)
        if not is_decisive(share):
            return born, explained
        least, most = 0, len(departing)
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if is_decisive(made_by(departing[:middle])) else (middle, most)
        value, share = departing[most - 1], made_by(departing[:most]) - made_by(departing[: most - 1])
        nodes = between(graph, value, {*figures, *evidence.feed.tensors})
        if len(_weighted(graph, nodes)) > 1 or not is_decisive(share):  # else many make it together, each a little
            return born, explained
        return {value: tuple(node.name for node in nodes)}, share


def _weighted(graph: Graph, nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes that have weights: one with its fused nodes is one op; several leave the culprit unknown."""
    return [node for node in nodes if _largest_constant(graph, node) > 1]


def _largest_constant(graph: Graph, node: Node) -> int:
    """Return the most axes of a node's constants (two or more of a weight, one of an addend); -1 without any."""
    return max((len(graph.constants[name].shape or ()) for name in node.uses if name in graph.constants), default=-1)


def _culprits(inv: Investigation, evidence: Evidence, value: str, nodes: Sequence[str]) -> list[Culprit]:
    """Return the nodes of a piece that have weights, else the one with the largest constant, else the last.

    None is blamed that only works out a shape.
    """
    graph = inv.model.graph
    every = [graph.node(name) for name in nodes]
    made = [node for node in every if not graph.shape_like.issuperset(node.outputs)] or every
    most = max(_largest_constant(graph, each) for each in made)
    largest = next(each for each in made if _largest_constant(graph, each) == most) if most >= 0 else made[-1]
    error, ratio = evidence.error(value), _floor_ratio(evidence, value)
    reason = f"with correct operands '{value}' is off by {error_size(error)}, {over_floor(ratio)}"
    return [
        Culprit(node.name, node.op_type, value, local_error=error, floor_ratio=ratio, reason=reason)
        for node in _weighted(graph, made) or [largest]
    ]
