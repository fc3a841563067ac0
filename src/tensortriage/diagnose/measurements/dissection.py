"""What the errors that a verdict rests on look like: patterns of the worst output, and of what each culprit computes.

A verdict says which op is wrong; the pattern of its error often says how (`tensortriage.compare.patterns.anatomy`). A
culprit's error is looked at where it is born: in the op's result on golden inputs, or, where that was not needed or is
not kept, in the target's own run.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.patterns.anatomy import dissect
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit, Verdict, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.runs.budget import BudgetSpent

MOST_CULPRITS = 3
"""Culprits whose errors are looked at, the most influential ones."""

MOST_SENTENCES = 4
"""Findings told of one tensor, the strongest ones."""


@dataclasses.dataclass(frozen=True, slots=True)
class Patterns:
    """What is peculiar about the errors of some tensors.

    Attributes:
        of: Value name to sentences, the strongest first; no sentence where nothing is peculiar.
    """

    of: Mapping[str, tuple[str, ...]]


def with_anatomy(inv: Investigation, evidence: Evidence, verdict: Verdict) -> Verdict:
    """Return a verdict with the patterns of its worst output's error and of its culprits', while time is left."""
    if verdict.kind is VerdictKind.MATCH or not evidence.results or not any(evidence.worst.errors.values()):
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
    target, feed = inv.question.target, evidence.feed
    output = evidence.worst.worst[0]
    checks, key = inv.case.checks, inv.key(target, inv.model, feed, "patterns of the output", output)
    told = checks.remember(key, f"what the error of '{output}' looks like", Patterns, lambda: of_output(inv, evidence))
    values = list(dict.fromkeys(culprit.value for culprit in verdict.culprits[:MOST_CULPRITS] if culprit.value))
    if not values:
        return dataclasses.replace(verdict, anatomy=told.of.get(output, ()))
    where = "alone" if evidence.local else "in context"
    key = inv.key(target, inv.model, feed, "patterns", where, values)
    question = "what the errors of the culprits look like"
    born = checks.remember(key, question, Patterns, lambda: born_in(inv, evidence, values))
    culprits = tuple(with_sentences(culprit, born) for culprit in verdict.culprits)
    return dataclasses.replace(verdict, anatomy=told.of.get(output, ()), culprits=culprits)


def with_sentences(culprit: Culprit, patterns: Patterns) -> Culprit:
    """Return a culprit with what is known of its value."""
    return dataclasses.replace(culprit, anatomy=patterns.of.get(culprit.value, culprit.anatomy))


def of_output(inv: Investigation, evidence: Evidence) -> Patterns:
    """Look at the worst output of the deployed target; outputs of other feeds may be what it holds by mistake."""
    name, feed = evidence.worst.worst[0], evidence.feed
    golden = inv.golden_outputs(feed)
    try:
        target = np.asarray(inv.runner(inv.question.target, inv.model).run(feed)[name])
    except EngineError:
        return Patterns({})
    others = {f"output '{other}'": golden[other] for other in evidence.worst.metrics if other != name}
    for other in inv.question.feeds:
        if other is not feed:
            others[f"'{name}' on {other.name}"] = inv.golden_outputs(other)[name]
    floor = evidence.worst.floors.target.get(name, 0.0)
    return Patterns({name: sentences(golden[name], target, others=others, floor=floor)})


def born_in(inv: Investigation, evidence: Evidence, values: Sequence[str]) -> Patterns:
    """Look at what culprits compute, against the golden values."""
    golden = inv.golden(evidence.feed)
    found: dict[str, tuple[str, ...]] = {}
    for value, target, floor in culprit_arrays(inv, evidence, [value for value in values if value in golden]):
        node = inv.model.graph.producer(value)
        operands = {f"its operand '{name}'": golden[name] for name in (node.uses if node else ()) if name in golden}
        found[value] = sentences(golden[value], target, others=operands, floor=floor)
    return Patterns(found)


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
        for value, array in inv.capture(inv.question.target, inv.model, evidence.feed, rest, specs=specs):
            yield value, array, floors.get(value, 0.0)
    except EngineError:
        return


def sentences(
    reference: np.ndarray, target: np.ndarray, *, others: Mapping[str, np.ndarray], floor: float
) -> tuple[str, ...]:
    """Return the strongest findings about one pair of tensors in words."""
    fitting = {name: np.asarray(array) for name, array in others.items() if array.shape == reference.shape}
    finite_floor = floor if np.isfinite(floor) else 0.0
    return dissect(np.asarray(reference), target, others=fitting, floor=finite_floor).sentences[:MOST_SENTENCES]
