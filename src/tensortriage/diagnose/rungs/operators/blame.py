"""The ops to blame: those that are wrong on golden inputs, weighed by their influence on the model's outputs.

An op that makes a NaN out of wrong operands is innocent, however conspicuous: its golden operands would have made none.
So the same weighing serves faults that stay finite and faults that do not.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from tensortriage.compare.judgement.relative_error import ratio_of
from tensortriage.compare.judgement.within import counts, is_decisive, is_innocent, is_suspect_ratio
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.local_errors.injection import Influence, influence, with_the_rest
from tensortriage.diagnose.measurements.local_errors.local import Local, local_errors, suspects, suspicious
from tensortriage.diagnose.measurements.local_errors.replay import replay
from tensortriage.diagnose.measurements.local_errors.representatives import by_representatives
from tensortriage.diagnose.measurements.soundness import WORDS
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.similarity.instances import Instances
from tensortriage.runs.outcome import Outcome
from tensortriage.values.text import error_size, over_floor, percent

QUESTION = "is any op wrong in isolation?"

TOGETHER = "do the wrong ops together cause the failure?"


@frozen_dataclass
class Blame:
    """Ops that are wrong in isolation and make the failure.

    Attributes:
        culprits: Most influential first, at most ten.
        named: How many there are.
        explained: Share of the output error that injecting them reproduces.
    """

    culprits: tuple[Culprit, ...]
    named: int
    explained: float


def blame(inv: Investigation, evidence: Evidence) -> tuple[Blame | None, Findings]:
    """Run every op on golden inputs and inject the errors of the suspects; record the question.

    Returns:
        The verdict (None when no op is wrong in isolation, or the wrong ops do not cause the failure), and the local
        errors and influences as far as they were measured.
    """
    weights = evidence.influence
    try:
        if evidence.local is None and (partial := by_representatives(inv, evidence.feed)) is not None:
            partial = _as_deployed(evidence, partial)
            blamed, weights = weighed(inv, evidence, partial)
            if blamed is not None:
                return blamed, Findings(local=partial, influence=weights)
        local = _as_deployed(evidence, evidence.local or local_errors(inv, evidence.feed))
    except EngineError as error:
        answer = f"unknown: the exploded graph {WORDS[Outcome.of(error).kind]}"
        inv.record.answered(QUESTION, answer, reason=error.message)
        return None, Findings(influence=weights)
    blamed, measured = weighed(inv, evidence, local)
    return blamed, Findings(local=local, influence=measured or weights)


def _as_deployed(evidence: Evidence, local: Local) -> Local:
    """Return the figures without a wrong shape of a model output that has the right one in the whole model's run.

    Such an op's result alone is no part of the failure.
    """
    misshapen = {value: words for value, words in local.misshapen.items() if value not in evidence.worst_feed.metrics}
    return dataclasses.replace(local, misshapen=misshapen)


def weighed(inv: Investigation, evidence: Evidence, local: Local) -> tuple[Blame | None, Influence | None]:
    """Inject the errors of the ops beyond their floors, and record the explained share; None if not measured."""
    feed, question = evidence.feed, QUESTION
    if local.misshapen:  # cannot be injected, and need not be
        words = (
            f"yes: {len(local.misshapen)} of {len(local.metrics) + len(local.misshapen)} return another shape or type"
        )
        inv.record.answered(question, words, misshapen=dict(local.misshapen))
        return None, None
    above = suspects(local)
    if not above:
        hidden = f"; {local.unseen.sentence()}" if local.unseen.values else ""
        seen = len(local.metrics)
        answer = f"no: all {seen} ops are within their floors alone" if seen else "unknown: no op could be run alone"
        inv.record.answered(question, answer + hidden)
        return None, None
    ratios = dict(above)
    exceeding = "exceeds its" if len(above) == 1 else "exceed their"
    try:
        weights = influence(inv, feed, local.arrays, list(ratios))
    except EngineError as error:
        words = f"{len(above)} of {len(local.metrics)} ops {exceeding} floor; their effect on the outputs is unknown"
        inv.record.answered(question, words, suspects=dict(above[:12]), reason=error.message)
        return None, None
    measured = max(evidence.worst_feed.errors.values())
    ranked = sorted(weights.alone, key=lambda value: (-weights.alone[value], -ratios[value]))
    largest = weights.alone[ranked[0]] if ranked else 0.0
    named = [value for value in ranked if largest > 0.0 and counts(weights.alone[value], largest)]
    inv.record.answered(
        question,
        f"{len(above)} of {len(local.metrics)} ops {exceeding} floor; injecting the {len(named)} that "
        f"matter{'s' * (len(named) == 1)} explains {percent(weights.explained)} of the "
        "output error" + (f" where results are rounded to {inv.precision.value}" if weights.rounded else ""),
        suspects={value: ratios[value] for value in list(ratios)[:12]},
        influence={value: weights.alone[value] for value in ranked[:12]},
        explained=weights.explained,
        measured_error=measured,
    )
    if not named or not is_decisive(weights.explained):
        return None, weights
    culprits = _culprits(inv, local, weights, named[:10])
    ops = {inv.model.graph.producer(value) for value in named}  # one op may have several results
    return Blame(culprits, len(ops), weights.explained), with_the_rest(inv, feed, local, weights)


def blame_together(inv: Investigation, evidence: Evidence) -> tuple[Blame | None, Findings]:
    """Run the ops that are wrong alone on each other's results; return whether that gives the failure.

    Returns:
        The verdict (None when fewer than two ops are wrong alone, or they do not make the failure), and the influences
        with the share that all of them explain.
    """
    local, weights = evidence.local, evidence.influence
    wrong = {*suspicious(local)} if local else set()
    values = [value for value in inv.question.values if value in wrong]
    if local is None or weights is None or local.misshapen or len(values) < 2:
        return None, Findings()
    inv.lab.progress(f"running the {len(values)} suspects together on each other's results")
    try:
        found = replay(inv, evidence.feed, local, values)
    except EngineError as error:
        inv.record.answered(TOGETHER, f"unknown: {error.message}")
        return None, Findings()
    decisive = is_decisive(found.explained)
    inv.record.answered(
        TOGETHER,
        f"{'yes' if decisive else 'no'}: the {len(values)} ops that exceed their floors alone explain "
        f"{percent(found.explained)} of the output error",
        explained=found.explained,
        error=found.together,
        rounds=found.rounds,
        ops=values[:12],
    )
    if not decisive:
        return None, Findings()
    weights = dataclasses.replace(weights, together=found.together, explained=found.explained)
    ranked = sorted(weights.alone, key=lambda value: -weights.alone[value])
    return Blame(_culprits(inv, local, weights, ranked[:10]), len(values), found.explained), Findings(influence=weights)


def _culprits(inv: Investigation, local: Local, weights: Influence, values: Sequence[str]) -> tuple[Culprit, ...]:
    """Return suspects as culprits."""
    graph, alike = inv.model.graph, Instances.of(inv.model).alike
    ratios = {value: local.floor_ratio(value) or 0.0 for value in values}
    return tuple(
        with_instances(graph, local, alike, culprit_of(inv, local.error(value), weights, value, ratios[value]))
        for value in values
    )


def with_instances(graph: Graph, local: Local, alike: Mapping[str, tuple[str, ...]], culprit: Culprit) -> Culprit:
    """Return a culprit of a repeated block with how many of its instances are wrong as well."""
    place = alike.get(culprit.node, ())
    if len(place) < 2:
        return culprit
    number = graph.node(culprit.node).outputs.index(culprit.value)
    wrong = []
    for name in place:
        value = graph.node(name).outputs[number]
        if local.over.get(value, 0.0) > 1.0:
            wrong.append(name)
    right = [name for name in place if name not in wrong]
    values = {name: graph.node(name).outputs[number] for name in right}
    near = [name for name, v in values.items() if not is_innocent(local.over.get(v, 0.0))]
    words = f"the same op is wrong in {len(wrong)} of {len(place)} layers"
    if near:  # as in a fusion that all of them are in, and that shows in one: none is called innocent
        words += f", and beyond its own rounding in {len(near)} more"
    elif len(wrong) == 1:
        words = f"the same op in the {len(right)} other layers is right"
    elif len(right) == 1:
        words += f", not in '{right[0]}'"
    return dataclasses.replace(culprit, reason=f"{culprit.reason}; {words}", instances=tuple(wrong), alike=len(place))


def culprit_of(inv: Investigation, error: float | None, weights: Influence, value: str, ratio: float) -> Culprit:
    """Return a suspect as culprit with its triple of figures."""
    node = inv.model.graph.producer(value)
    assert node is not None
    return Culprit(
        node.name,
        node.op_type,
        value,
        local_error=error,
        influence=weights.alone.get(value),
        floor_ratio=ratio,
        reason=f"fed with correct inputs it is off by {error_size(error)}, {over_floor(ratio)}",
    )


def misled(evidence: Evidence, node: Node) -> bool:
    """Return whether an op may have been fed wrong operands: one that is above its floor in the target's own run."""
    figures = evidence.in_context or {}
    floors = evidence.floors.target if evidence.floors else {}
    for name in node.uses:
        if name in figures:
            ratio = ratio_of(evidence.error(name), floors.get(name))
            if ratio is None or is_suspect_ratio(ratio):
                return True
    return False
