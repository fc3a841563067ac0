"""Patterns of the errors that a verdict rests on: of the worst output, and of each culprit's result.

A verdict says which op is wrong; the pattern of its error often says how (`tensortriage.compare.patterns.anatomy`). A
culprit's error is looked at where it originates: in the op's result on golden inputs, or, where that was not needed or
is not kept, in the target's own run.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import is_minor
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.compare.patterns.anatomy import Anatomy, dissect
from tensortriage.compare.patterns.finding import PatternFinding
from tensortriage.compare.patterns.narrower_numbers import operand_beyond
from tensortriage.compare.patterns.operand_conditions import where_wrong
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Node
from tensortriage.runs.budget import BudgetSpent
from tensortriage.values.text import error_size

_NO_PLACE = ("scattered", "noise")
"""Findings that say that there is no pattern, which one of the operands is."""

MOST_CULPRITS = 3
"""Culprits whose errors are looked at, the most influential ones."""

Patterns = Mapping[str, Anatomy]
"""Value name to the peculiarities of its error, the strongest first; nothing for an ordinary error."""


@frozen_dataclass
class Dissection:
    """Peculiarities of the errors that a verdict rests on.

    Attributes:
        output: Sentences about the worst output's, the strongest first.
        culprits: Likewise of the culprits' results, by value.
    """

    output: Sequence[str] = ()
    culprits: Patterns = dataclasses.field(default_factory=dict)


def dissection(inv: Investigation, evidence: Evidence, conclusion: Conclusion) -> Dissection:
    """Look at the errors of the worst output and of the culprits, while time is left."""
    if conclusion.kind is VerdictKind.MATCH or not evidence.results or not any(evidence.worst_feed.errors.values()):
        return Dissection()
    values = dict.fromkeys(culprit.value for culprit in conclusion.culprits[:MOST_CULPRITS] if culprit.value)
    try:
        output = of_output(inv, evidence)
        return Dissection(output.sentences if output else (), born_in(inv, evidence, list(values)) if values else {})
    except BudgetSpent:
        return Dissection()


def of_output(inv: Investigation, evidence: Evidence) -> Anatomy | None:
    """Dissect the worst output of the deployed target, which may hold outputs of other feeds by mistake."""
    name, feed = evidence.worst_feed.worst_output(whole=True)[0], evidence.feed
    golden = inv.golden.outputs(feed)
    try:
        target = np.asarray(inv.deployed(feed)[name])
    except EngineError:
        return None
    others = {f"output '{other}'": golden[other] for other in evidence.worst_feed.metrics if other != name}
    for other in inv.question.feeds:
        if other is not feed:
            others[f"'{name}' on {other.name}"] = inv.golden.outputs(other)[name]
    floor = evidence.worst_feed.floors.target.get(name, 0.0)
    return dissected(golden[name], target, others=others, floor=floor)


def born_in(inv: Investigation, evidence: Evidence, values: Sequence[str]) -> Patterns:
    """Compare the results of culprits with the golden values."""
    golden = inv.golden.of(evidence.feed)
    found: dict[str, Anatomy] = {}
    for value, target, floor in culprit_arrays(inv, evidence, [value for value in values if value in golden]):
        node = inv.model.graph.producer(value)
        used = dict.fromkeys(node.uses if node else ())
        operands = {f"its operand '{name}'": golden[name] for name in used if name in golden}
        found[value] = dissected(golden[value], target, others=operands, floor=floor)
        if node is not None and (half := wrong_direction(node, value, np.asarray(golden[value]), target)):
            others = (each for each in found[value].findings if each.evidence.get("axis") != half.evidence["axis"])
            found[value] = Anatomy((half, *others))
            continue
        if not found[value].findings or "through-type" in found[value].slugs:
            continue
        whole = {name: np.asarray(golden[name]) for name in used if name in golden}
        whole |= {name: array for name, array in evidence.feed.tensors.items() if name in used}
        whole |= {name: inv.model.graph.weight(name) for name in used if name in inv.model.graph.constants}
        more = operand_beyond(whole, golden[value])
        more = more or where_wrong(whole, np.asarray(golden[value]), target, floor=floor)
        if more is not None:
            found[value] = Anatomy((more, *(each for each in found[value].findings if each.slug not in _NO_PLACE)))
    return found


def wrong_direction(node: Node, value: str, reference: np.ndarray, target: np.ndarray) -> PatternFinding | None:
    """Return the direction in which a bidirectional recurrent layer is wrong; None for both, or another operator."""
    if node.op_type not in ("RNN", "GRU", "LSTM") or node.attributes.get("direction") != "bidirectional":
        return None
    axis = int(value == node.outputs[0]) + bool(node.attributes.get("layout"))
    if reference.shape != target.shape or reference.shape[axis : axis + 1] != (2,):
        return None
    errors = [error_of(measure(reference.take(each, axis), target.take(each, axis))) for each in (0, 1)]
    wrong = int(errors[1] > errors[0])
    if not is_minor(errors[1 - wrong], errors[wrong]):
        return None
    names = ("forward", "backward")
    sentence = (
        f"its {names[wrong]} direction (index {wrong} of axis {axis}) is off by {error_size(errors[wrong])}, its "
        f"{names[1 - wrong]} direction by {error_size(errors[1 - wrong])}"
    )
    return PatternFinding("direction", sentence, 1.0, {"axis": axis, "direction": names[wrong]})


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
        specs = inv.golden.specs(evidence.feed)
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
