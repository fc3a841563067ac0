"""What the errors that a verdict rests on look like: patterns of the worst output, and of what each culprit computes.

A verdict says which op is wrong; the pattern of its error often says how (`tensortriage.compare.patterns.anatomy`). A
culprit's error is looked at where it is born: in the op's result on golden inputs, or, where that was not needed or is
not kept, in the target's own run.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.patterns.anatomy import Anatomy, dissect
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit, Verdict, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.runs.budget import BudgetSpent

MOST_CULPRITS = 3
"""Culprits whose errors are looked at, the most influential ones."""

MOST_SENTENCES = 4
"""Findings told of one tensor, the strongest ones."""


Patterns = Mapping[str, Anatomy]
"""Value name to what is peculiar about its error, the strongest first; nothing where it is as any other."""


def with_anatomy(inv: Investigation, evidence: Evidence, verdict: Verdict) -> Verdict:
    """Return a verdict with the patterns of its worst output's error and of its culprits', while time is left."""
    if verdict.kind is VerdictKind.MATCH or not evidence.results or not any(evidence.worst_feed.errors.values()):
        return verdict
    try:
        return looked_at(inv, evidence, verdict)
    except BudgetSpent:
        return verdict


def looked_at(inv: Investigation, evidence: Evidence, verdict: Verdict) -> Verdict:
    """Look at the errors of a verdict's worst output and culprits.

    Raises:
        BudgetSpent: When there is no time to ask the target again.
    """
    output = evidence.worst_feed.worst_output()[0]
    told = of_output(inv, evidence).get(output)
    verdict = dataclasses.replace(verdict, anatomy=told.sentences[:MOST_SENTENCES] if told else ())
    values = list(dict.fromkeys(culprit.value for culprit in verdict.culprits[:MOST_CULPRITS] if culprit.value))
    if not values:
        return verdict
    born = born_in(inv, evidence, values)
    culprits = tuple(with_sentences(culprit, born) for culprit in verdict.culprits)
    return dataclasses.replace(verdict, culprits=culprits)


def with_sentences(culprit: Culprit, patterns: Patterns) -> Culprit:
    """Return a culprit with what is known of its value."""
    found = patterns.get(culprit.value)
    if found is None:
        return culprit
    return dataclasses.replace(culprit, anatomy=found.sentences[:MOST_SENTENCES], effect=found.effect)


def of_output(inv: Investigation, evidence: Evidence) -> Patterns:
    """Look at the worst output of the deployed target; outputs of other feeds may be what it holds by mistake."""
    name, feed = evidence.worst_feed.worst_output()[0], evidence.feed
    golden = inv.golden_outputs(feed)
    try:
        target = np.asarray(inv.deployed(feed)[name])
    except EngineError:
        return {}
    others = {f"output '{other}'": golden[other] for other in evidence.worst_feed.metrics if other != name}
    for other in inv.question.feeds:
        if other is not feed:
            others[f"'{name}' on {other.name}"] = inv.golden_outputs(other)[name]
    floor = evidence.worst_feed.floors.target.get(name, 0.0)
    return {name: dissected(golden[name], target, others=others, floor=floor)}


def born_in(inv: Investigation, evidence: Evidence, values: Sequence[str]) -> Patterns:
    """Look at what culprits compute, against the golden values."""
    golden = inv.golden(evidence.feed)
    found: dict[str, Anatomy] = {}
    for value, target, floor in culprit_arrays(inv, evidence, [value for value in values if value in golden]):
        node = inv.model.graph.producer(value)
        operands = {f"its operand '{name}'": golden[name] for name in (node.uses if node else ()) if name in golden}
        found[value] = dissected(golden[value], target, others=operands, floor=floor)
    return found


def culprit_arrays(
    inv: Investigation, evidence: Evidence, values: Sequence[str]
) -> Iterator[tuple[str, np.ndarray, float]]:
    """Yield value, the target's array and its floor: of the op alone where that is kept, else of the target's run."""
    local, rest = evidence.local, []
    for value in values:
        if local is not None and value in local.arrays:
            yield value, np.asarray(local.arrays[value]), local.floors.target.get(value, 0.0)
        else:
            rest.append(value)
    if not rest or evidence.in_context is None:
        return
    floors = evidence.floors.target if evidence.floors else {}
    try:
        specs = inv.specs(evidence.feed)
        shown = inv.lab.values(inv.question.target, inv.model, evidence.feed, rest, specs=specs)
    except EngineError:
        return
    for value in shown.names():
        yield value, np.asarray(shown[value]), floors.get(value, 0.0)


def dissected(reference: np.ndarray, target: np.ndarray, *, others: Mapping[str, np.ndarray], floor: float) -> Anatomy:
    """Return the findings about one pair of tensors."""
    fitting = {name: np.asarray(array) for name, array in others.items() if array.shape == reference.shape}
    finite_floor = floor if np.isfinite(floor) else 0.0
    return dissect(np.asarray(reference), target, others=fitting, floor=finite_floor)
