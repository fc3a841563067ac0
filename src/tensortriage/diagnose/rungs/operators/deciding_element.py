"""Does the failure hang on single elements that another op got wrong, too small for their tensor's error to show?

Log, Div and Sqrt turn small differences into large ones: 0 instead of 1e-20 becomes -Inf. The op where it shows is
right then, and so are, as tensors, its operands. The elements are followed back to the op that makes them wrong of
golden operands. It is blamed when its result, put into the reference's run, makes at least half of the failure.
Subnormal numbers that an engine flushes to zero are a freedom: no op is wrong then, and the model's numbers are too
small for it.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.compare.judgement.within import is_decisive, is_suspect_ratio
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.compare.nonfinite.element import spoken
from tensortriage.diagnose.measurements.element_origins.element_errors import (
    ElementError,
    ElementErrors,
    element_errors,
)
from tensortriage.diagnose.measurements.element_origins.element_trail import before, trail
from tensortriage.diagnose.measurements.element_origins.provenance import mismatches
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.local_errors.injection import Influence, influence
from tensortriage.diagnose.measurements.suggested_commands import reduce_command, run_command
from tensortriage.diagnose.rungs.operators.blame import misled
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import NUMBERS_FLUSHED, blamed
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.envelope.elements import smallest_normal
from tensortriage.errors import EngineError, UsageError
from tensortriage.model.ir.graph import Node
from tensortriage.values.dtype import DType
from tensortriage.values.store import MemoryStore
from tensortriage.values.text import percent

QUESTION = "do single wrong elements cause the failure?"

MOST_STARTS = 4
"""Ops that are followed back from at once."""


@rung(
    QUESTION,
    reads=("results", "floors", "in_context", "influence", "wrong_together"),
    gives=("influence",),
    cost="a build and a run of some ops",
    ends=(VerdictKind.LOCAL_FAULT, VerdictKind.NON_FINITE, VerdictKind.RANGE_OVERFLOW),
)
def deciding_elements(inv: Investigation, evidence: Evidence) -> Answer:
    """Is an op beyond its floor in the target's run, alone right and fed within the floors, because of few elements?"""
    if evidence.wrong_together:  # what was seen inside is another program than the one that is wrong
        return Answer()
    figures, floors = evidence.in_context or {}, evidence.floors.target if evidence.floors else {}
    starts = []
    for node in inv.model.graph.nodes:
        ratios = [ratio_of(evidence.error(name), floors.get(name)) or 0.0 for name in node.outputs if name in figures]
        if is_suspect_ratio(max(ratios, default=0.0)) and not misled(evidence, node):
            starts.append(node)
    return of_elements(inv, evidence, starts[:MOST_STARTS]) if starts else Answer()


def of_elements(
    inv: Investigation, evidence: Evidence, starts: Sequence[Node], rules: Mapping[str, str] | None = None
) -> Answer:
    """Follow wrong elements back to an op; a verdict if one makes them and they cause the failure.

    Args:
        inv: The investigation.
        evidence: The evidence so far.
        starts: Ops in which an error appears that their operands, as tensors, do not have.
        rules: How the NaN or Inf of these ops came to be, in words, by node name; None when the error is finite.
    """
    arrays = before(inv, evidence, list(starts))
    masks = trail(inv, evidence, wrong_elements(inv, evidence, starts, arrays, finite=rules is None), arrays)
    if not masks:
        return Answer()
    try:
        errors = element_errors(inv, evidence, masks)
        if errors.wrong:
            return of_an_op(inv, evidence, starts, errors, rules)
    except (EngineError, UsageError) as error:
        inv.record.answered(QUESTION, f"unknown: the ops could not be run alone: {error.message}")
        return Answer()
    if errors.flushed:
        return Answer(of_flushed_numbers(inv, starts, errors.flushed, rules))
    inv.record.answered(QUESTION, "no: in isolation, no op makes a wrong element that leads there")
    return Answer()


def wrong_elements(
    inv: Investigation, evidence: Evidence, starts: Sequence[Node], arrays: Mapping[str, np.ndarray], *, finite: bool
) -> dict[str, np.ndarray]:
    """Return the elements that fail in given ops: non-finite ones, or those beyond their tensor's floor."""
    golden, floors = inv.golden.of(evidence.feed), evidence.floors.target if evidence.floors else {}
    masks = {}
    for name in (value for node in starts for value in node.outputs if value in arrays and value in golden):
        right, computed = np.asarray(golden[name]), arrays[name]
        if right.shape != computed.shape or not DType.from_numpy(right.dtype).is_float:
            continue
        mask = mismatches(right, computed)
        if finite and name in floors:
            exact = right.astype(np.float64)
            size = float(np.sqrt(np.mean(np.square(exact[np.isfinite(exact)])))) if exact.size else 0.0
            with np.errstate(invalid="ignore"):
                mask = mask | (np.abs(computed.astype(np.float64) - exact) > floors[name] * size)
        if mask.any():
            masks[name] = mask
    return masks


def of_an_op(
    inv: Investigation,
    evidence: Evidence,
    starts: Sequence[Node],
    errors: ElementErrors,
    rules: Mapping[str, str] | None,
) -> Answer:
    """Blame the ops that make wrong elements, if these make the failure."""
    if any(error.node in starts for error in errors.wrong):
        return Answer()  # wrong where it shows: there is nobody else to blame
    weights = influence(inv, evidence.feed, MemoryStore(errors.results), [error.value for error in errors.wrong])
    first, shows = errors.wrong[0], starts[0]
    where = f"element {list(first.index)} of {first.node.op_type} '{first.node.name}'"
    inv.record.answered(
        QUESTION,
        f"yes: {where} is {spoken(first.found)} instead of {spoken(first.expected)}; injecting the results of "
        f"{len(errors.wrong)} such op{'s' * (len(errors.wrong) > 1)} explains {percent(weights.explained)} of the "
        "failure",
        shows_in=[node.name for node in starts],
        elements={error.value: facts(error) for error in errors.wrong},
        influence=dict(weights.alone),
        explained=weights.explained,
    )
    if not is_decisive(weights.explained):
        return Answer()
    rule, place = (rules or {}).get(shows.name), f"{shows.op_type} '{shows.name}'"
    shown = f"{place}: {rule}" if rule else place
    culprits = [culprit_of(inv, evidence, error, errors, weights, shown) for error in errors.wrong]
    how = f" ({rule})" if rule else ""
    what = "NaN or Inf that the reference does not have appears" if rules is not None else "the failure shows"
    verdict = Conclusion(
        VerdictKind.LOCAL_FAULT if rules is None else VerdictKind.NON_FINITE,
        blamed(weights.explained),
        f"{what} in {place}{how}, because {first.node.op_type} '{first.node.name}' before it is "
        f"wrong: {culprits[0].reason}",
        culprits=culprits,
        next=[reduce_command(inv.question), run_command(inv.question, "--onnx-outputs", first.value)],
    )
    return Answer(verdict, Findings(influence=evidence.influence or weights))


def culprit_of(
    inv: Investigation,
    evidence: Evidence,
    error: ElementError,
    errors: ElementErrors,
    weights: Influence,
    shown: str,
) -> Culprit:
    """Return an op as culprit, with the element, its right value, and the place where it is ``shown``."""
    golden, floors = inv.golden.of(evidence.feed), evidence.floors.target if evidence.floors else {}
    local = error_of(measure(np.asarray(golden[error.value]), errors.results[error.value]))
    more = f" ({error.elements} such elements)" if error.elements > 1 else ""
    ratio = ratio_of(local, floors.get(error.value))
    hidden = ", too little to show in the error of the whole tensor" if not is_suspect_ratio(ratio) else ""
    return Culprit(
        error.node.name,
        error.node.op_type,
        error.value,
        local_error=local,
        influence=weights.alone.get(error.value),
        floor_ratio=ratio,
        reason=f"on golden inputs element {list(error.index)} of its result is {spoken(error.found)} instead of "
        f"{spoken(error.expected)}{more}{hidden}; it shows in {shown}",
    )


def of_flushed_numbers(
    inv: Investigation,
    starts: Sequence[Node],
    flushed: Sequence[ElementError],
    rules: Mapping[str, str] | None,
) -> Conclusion:
    """Return the conclusion that flushing subnormal numbers to zero makes the failure, with the place."""
    first, shows = flushed[0], starts[0]
    word = inv.precision.value
    limit = smallest_normal(DType.FLOAT, inv.precision)
    number = f"{spoken(first.expected)} at element {list(first.index)} of '{first.value}'"
    reason = (
        f"reads {number} as 0, because that is below the smallest normal number of {word}, {spoken(limit)}, and "
        f"denormals are flushed to zero on {inv.question.target}, which engines are free to do"
    )
    if rules and shows.name in rules:
        reason += f"; so {rules[shows.name]}"
    inv.record.answered(
        QUESTION,
        f"yes: denormals are flushed to zero: {number} becomes 0",
        shows_in=[node.name for node in starts],
        flushed={error.value: facts(error) for error in flushed},
    )
    return Conclusion(
        VerdictKind.RANGE_OVERFLOW,
        NUMBERS_FLUSHED,
        f"no op is wrong, but {word} cannot hold what {shows.op_type} '{shows.name}' needs: it {reason}; keep the "
        f"numbers above {spoken(limit)}, by a larger epsilon, a Max or another scale",
        culprits=[Culprit(shows.name, shows.op_type, shows.outputs[0], reason=reason)],
        next=[run_command(inv.question, "--onnx-outputs", first.value)],
    )


def facts(error: ElementError) -> Mapping[str, object]:
    """Return an element as figures."""
    return {
        "index": list(error.index),
        "expected": error.expected,
        "found": error.found,
        "elements": error.elements,
    }
