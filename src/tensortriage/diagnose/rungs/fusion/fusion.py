"""Are ops wrong only together? The fault of a fusion: each op is right alone, but their joint results are not.

Marking values to look at them breaks fusions, so the in-context figures may be of no use here. The evidence is pieces
of the model on golden inputs (`together`), and the whole model with as few marks as restore its answer (`breakers`).
"""

from collections.abc import Iterator, Sequence
from functools import partial

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.wired_ops import Wired, inner_values, runnable
from tensortriage.diagnose.measurements.outputs import OutputFigures, judge
from tensortriage.diagnose.measurements.suggested_commands import reduce_command
from tensortriage.diagnose.measurements.windows import Round, disjoint, neighbourhood, rounds
from tensortriage.diagnose.rungs.fusion.fusion_breakers import breakers
from tensortriage.diagnose.rungs.fusion.integer_kernels import off_by_a_step
from tensortriage.diagnose.rungs.fusion.joint_ops import Together, find_together
from tensortriage.diagnose.rungs.fusion.restored_answer import sound
from tensortriage.diagnose.rungs.number_format.function_pieces import coarse_at_most, coarse_words
from tensortriage.diagnose.rungs.number_format.stages import taken_in_pieces
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.confidence import (
    FUSED,
    FUSION_CURED,
    FUSION_IN_THE_WHOLE,
    LEAST_BLAMED,
    ROUNDS_INSIDE,
    blamed,
)
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.text import error_size, over_floor, percent

MOST_CULPRITS = 24
"""Ops that are named; all sets are in the step."""

QUESTION = "are ops wrong only together?"


@rung(
    QUESTION,
    reads=("results", "floors", "in_context", "in_context_judged", "explained", "local", "wrong_together"),
    cost="a build and a run for each round of regions or windows, some ten",
    ends=(VerdictKind.FUSION_FAULT, VerdictKind.ROUNDING, VerdictKind.INCONCLUSIVE),
)
def fusion_fault(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Is a piece of several ops wrong that the target fuses, though each of them is right alone?"""
    pieces = evidence.local is not None  # else the target cannot build pieces of the model
    nodes = runnable(inv, evidence.feed) if pieces else ()
    vanishes = marking_restores(inv, evidence)
    joint: Together | None = None
    if pieces:
        tried = rounds(inv, evidence, nodes, trusted=not vanishes)
        joint, excused = find_together(inv, evidence, tried, excuse=partial(taken_in_pieces, inv, evidence))
        if excused:
            return excused
    marks: tuple[str, ...] = ()
    if joint is None and vanishes:
        marks = told_breakers(inv, evidence, [inv.question.values])
        if marks and pieces:
            joint, _ = find_together(inv, evidence, around(inv, marks, nodes))
    if joint is None and not marks:
        answer = (
            f"no: no region or window of {len(nodes)} ops causes the failure" if pieces else "unknown: no piece builds"
        )
        inv.record.answered(QUESTION, answer)
        return None
    if joint is not None:
        tell(inv, joint)
        if verdict := off_by_a_step(inv, evidence, joint):
            return verdict
        marks = marks or told_breakers(inv, evidence, candidates(inv, joint))
    coarse = coarse_at_most(inv, evidence, [item.ratio for item in joint.sets] if joint else ())
    if joint is not None:
        return undecided(inv, joint, marks) if coarse else with_sets(inv, evidence, joint, marks)
    return only_marks(inv, evidence, marks, coarse=coarse)


def undecided(inv: Investigation, joint: Together, marks: tuple[str, ...]) -> Conclusion:
    """The ops are known; fused, their error exceeds rounding and is too small for a fault."""
    first = joint.sets[0]
    types = " + ".join(inv.model.graph.node(name).op_type for name in first.nodes)
    others = f" ({len(joint.sets)} such sets)" if len(joint.sets) > 1 else ""
    error = max(first.errors.values(), default=0.0)
    return Conclusion(
        VerdictKind.INCONCLUSIVE,
        ROUNDS_INSIDE,
        f"{types} ({', '.join(map(repr, first.nodes))}) are right alone, and as one on "
        f"{inv.question.target}{others} off by {error_size(error)}, {over_floor(first.ratio)}: {coarse_words(inv)}"
        f"{breakers_words(marks)}",
        next=following(inv, marks),
        breakers=marks,
    )


def marking_restores(inv: Investigation, evidence: Evidence) -> bool:
    """Return whether the answer was right in the instrumented run."""
    names = evidence.worst_feed.metrics
    figures = {name: figure for name, figure in (evidence.in_context or {}).items() if name in names}
    if len(figures) < len(names):
        return False
    marked = OutputFigures(figures, judged=evidence.in_context_judged)
    return sound(inv, judge(inv, evidence.feed, marked, evidence.worst_feed.floors), inv.question.target)


def around(inv: Investigation, marks: tuple[str, ...], nodes: tuple[str, ...]) -> Iterator[Round]:
    """Yield growing windows around the values that restore the answer when marked."""
    graph, radius = inv.model.graph, 0
    seeds = []
    for value in marks:
        maker = graph.producer(value)
        seeds.append({user.name for user in graph.consumers(value)} | ({maker.name} if maker else set()))
    while True:
        sets = disjoint(neighbourhood(graph, names & {*nodes}, radius, nodes) for names in seeds)
        if sets:
            yield f"windows of radius {radius} around the breakers", sets
        if max(map(len, sets), default=len(nodes)) == len(nodes) or radius > len(nodes):
            return
        radius = max(1, 2 * radius)


def candidates(inv: Investigation, joint: Together) -> list[tuple[str, ...]]:
    """Return the values within each set found, and within the windows that hold no such set."""
    graph = inv.model.graph
    pieces = [item.nodes for item in joint.sets]
    pieces += [item.nodes for item in joint.wrong if not any({*small} <= {*item.nodes} for small in pieces)]
    return [inner_values(graph, nodes) for nodes in pieces]


def tell(inv: Investigation, joint: Together) -> None:
    """Record the findings."""
    first = joint.sets[0]
    names = " + ".join(inv.model.graph.node(name).op_type for name in first.nodes)
    more = len(joint.sets) - 1
    inv.record.answered(
        QUESTION,
        f"yes: {names} ({', '.join(map(repr, first.nodes))})"
        + (f" and {more} more such {'sets' if more > 1 else 'set'}" if more else "")
        + f", found in {joint.where}; injecting them explains {percent(joint.explained)} of the output error",
        sets=[list(item.nodes) for item in joint.sets],
        floor_ratios=[item.ratio for item in joint.sets],
        errors=[dict(item.errors) for item in joint.sets],
        found_in=joint.where,
        places=len(joint.wrong),
        explained=joint.explained,
        observation="isolated",
    )


def with_sets(inv: Investigation, evidence: Evidence, joint: Together, marks: tuple[str, ...]) -> Conclusion:
    """The ops are known, and perhaps the tensors that break their fusion."""
    first = joint.sets[0]
    graph = inv.model.graph
    types = " + ".join(graph.node(name).op_type for name in first.nodes)
    error = max(first.errors.values(), default=0.0)
    others = f" ({len(joint.sets)} such sets)" if len(joint.sets) > 1 else ""
    culprits = [
        culprit(inv, evidence, item, name, weight)
        for item, weight in zip(joint.sets, joint.influence, strict=True)
        for name in item.nodes
    ][:MOST_CULPRITS]
    return Conclusion(
        VerdictKind.FUSION_FAULT,
        FUSION_CURED if marks else blamed(max(joint.explained, LEAST_BLAMED), at_most=FUSED),
        f"{types} ({', '.join(map(repr, first.nodes))}) are right alone and wrong together on "
        f"{inv.question.target}{others}: off by {error_size(error)}, {over_floor(first.ratio)}; "
        f"{'it explains' if len(joint.sets) == 1 else 'they explain'} {percent(joint.explained)} of the "
        "output error" + breakers_words(marks),
        culprits=culprits,
        next=following(inv, marks),
        breakers=marks,
    )


def culprit(inv: Investigation, evidence: Evidence, item: Wired, name: str, influence: float) -> Culprit:
    """Return one op of a set with its figures alone and together."""
    graph = inv.model.graph
    node = graph.node(name)
    value = next((value for value in node.outputs if value), "")
    alone = evidence.local.error(value) if evidence.local else None
    ratio = evidence.local.floor_ratio(value) if evidence.local else None
    others = ", ".join(repr(other) for other in item.nodes if other != name)
    within = "not measured alone" if ratio is None else f"alone {error_size(alone)}, {over_floor(ratio)}"
    if evidence.local is not None and evidence.local.over.get(value, 0.0) > 1.0:
        within += " (not the cause of the failure)"
    end, error = max(item.errors.items(), key=lambda pair: pair[1])
    return Culprit(
        name,
        node.op_type,
        value,
        local_error=alone,
        influence=influence,
        floor_ratio=ratio,
        reason=f"wrong only together with {others}: {within}; together '{end}' is off by {error_size(error)}, "
        + over_floor(item.ratio),
    )


def only_marks(inv: Investigation, evidence: Evidence, marks: tuple[str, ...], *, coarse: bool) -> Conclusion:
    """Marking cures it, yet no piece of the model shows the fault: the fusion needs the whole."""
    shown = "no op and no piece shows it on golden inputs" if evidence.local else "pieces of it cannot be built there"
    inv.record.answered(QUESTION, f"in the whole model, yes: {shown}")
    graph = inv.model.graph
    culprits = [neighbour(node, word, value) for value in marks for node, word in ends_of(graph, value)]
    first = culprits[0] if culprits else None
    place = f", fused across '{marks[0]}' of {first.op_type} '{first.node}'" if first else ""
    off = f"off by {coarse_words(inv)}" if coarse else "wrong"
    return Conclusion(
        VerdictKind.INCONCLUSIVE if coarse else VerdictKind.FUSION_FAULT,
        ROUNDS_INSIDE if coarse else FUSION_IN_THE_WHOLE,
        f"{inv.question.target} is {off} in the whole model{place}: {shown}{breakers_words(marks)}",
        culprits=() if coarse else culprits,
        next=following(inv, marks),
        breakers=marks,
    )


def ends_of(graph: Graph, value: str) -> list[tuple[Node, str]]:
    """Return the nodes at both ends of a value, with their roles."""
    maker = graph.producer(value)
    return ([(maker, "makes")] if maker else []) + [(user, "uses") for user in graph.consumers(value)]


def neighbour(node: Node, word: str, value: str) -> Culprit:
    """Return the culprit at one end of a breaker."""
    reason = f"{word} '{value}', which restores the answer when it is marked as an output"
    own = next((name for name in node.outputs if name), "")
    return Culprit(node.name, node.op_type, own, reason=reason)


def told_breakers(inv: Investigation, evidence: Evidence, groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Find the tensors that restore the answer when marked, and record them."""
    marks = breakers(inv, evidence, groups)
    inv.record.answered(
        "which marked tensors restore the answer?",
        ", ".join(map(repr, marks)) if marks else "none of those between the ops",
        breakers=list(marks),
        observation="instrumented",
    )
    return marks


def breakers_words(marks: tuple[str, ...]) -> str:
    """Return the breakers for a summary."""
    if not marks:
        return ""
    which = ", ".join(map(repr, marks[:3])) + (", ..." if len(marks) > 3 else "")
    return f"; marking {which} as {'an output' if len(marks) == 1 else 'outputs'} restores the answer"


def following(inv: Investigation, marks: tuple[str, ...]) -> list[str]:
    """Return the commands to run next."""
    target = str(inv.question.target)
    patch = (
        [triage_command(inv.question, "diagnose", "--target", target, "--emit-breakers", "patched.onnx")]
        if marks
        else []
    )
    return [*patch, reduce_command(inv.question)]
