"""Is one op wrong in isolation on golden inputs, and does its error make the failure?"""

import math

from tensortriage.compare.judgement.within import beyond_fp32, is_habit, is_lost
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.local import suspects
from tensortriage.diagnose.measurements.misshapen import of_another_shape
from tensortriage.diagnose.measurements.nonfinite_values.nonfinite import scanned
from tensortriage.diagnose.measurements.suggested_commands import reduce_command, run_command
from tensortriage.diagnose.rungs.number_format.format_range import excesses
from tensortriage.diagnose.rungs.operators.blame import QUESTION, TOGETHER, Blame, blame, blame_together
from tensortriage.diagnose.rungs.operators.layout import of_an_op
from tensortriage.diagnose.rungs.operators.quantized_ops import of_a_quantizer
from tensortriage.diagnose.rungs.premises.second_opinion import at_the_culprit
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.rungs.variation.contradicted import wrong_alone_in_some
from tensortriage.diagnose.state.confidence import LEAST_BLAMED, blamed
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.inputs.feed import Feed
from tensortriage.values.text import magnitude, percent


@rung(
    QUESTION,
    reads=("results", "rounded", "local", "influence", "moved", "in_context", "builds_compared"),
    gives=("local", "influence"),
    cost="a build and a run, every op alone; two evaluations; a run of the reference for each suspect",
    ends=(
        VerdictKind.LOCAL_FAULT,
        VerdictKind.LAYOUT,
        VerdictKind.COMPARISON_UNSOUND,
        VerdictKind.NON_FINITE,
        VerdictKind.QUANTIZATION,
        VerdictKind.INTERMITTENT,
    ),
)
def local_fault(inv: Investigation, evidence: Evidence) -> Answer:
    """Is an op wrong on golden inputs, and does its error make the failure?"""
    fault, findings = blame(inv, evidence)
    return Answer(_verdict(inv, evidence.with_(**findings), fault), findings)


@rung(
    TOGETHER,
    reads=("results", "rounded", "local", "influence", "moved", "in_context", "builds_compared"),
    gives=("influence",),
    cost="up to 64 runs of both",
    ends=(
        VerdictKind.LOCAL_FAULT,
        VerdictKind.LAYOUT,
        VerdictKind.NON_FINITE,
        VerdictKind.QUANTIZATION,
        VerdictKind.COMPARISON_UNSOUND,
        VerdictKind.INTERMITTENT,
    ),
)
def local_faults(inv: Investigation, evidence: Evidence) -> Answer:
    """Do the ops that are wrong on golden inputs make the failure, each fed with the results of the others?

    Asked late, since any set of ops that holds most of them makes the error of the target: a freedom of the hardware,
    or the engine's habit at most ops in a narrow format, is no fault.
    """
    fault, findings = blame_together(inv, evidence)
    if fault is None or (inv.precision in ROUNDED and a_habit(inv, evidence, fault)):
        return Answer()
    return Answer(_verdict(inv, evidence.with_(**findings), fault), findings)


def _verdict(inv: Investigation, evidence: Evidence, fault: Blame | None) -> Conclusion | None:
    """Return the verdict on the ops to blame; None without any, or if the engine does the same everywhere."""
    if evidence.local is not None and (verdict := of_another_shape(inv, evidence.local.misshapen)):
        return at_the_culprit(inv, evidence.feed, verdict.culprits[0].value, math.inf) or verdict
    if fault is None or (evidence.rounded is not None and a_habit(inv, evidence, fault)):
        return None
    first = fault.culprits[0]
    if verdict := wrong_alone_in_some(inv, evidence, first):
        return verdict
    if verdict := at_the_culprit(inv, evidence.feed, first.value, first.local_error or 0.0):
        return verdict
    # A NaN that originates here but does not reach the outputs, since a quantizer or a comparison on the way hides it.
    figure = evidence.local.metrics.get(first.value) if evidence.local else None
    lost = figure is not None and figure.nonfinite_mismatch > 0
    if verdict := of_an_op(inv, evidence, fault) or (None if lost else of_a_quantizer(inv, evidence, fault)):
        return verdict
    return Conclusion(
        VerdictKind.NON_FINITE if lost else VerdictKind.LOCAL_FAULT,
        blamed(max(fault.explained, LEAST_BLAMED)),
        f"{first.op_type} '{first.node}' is wrong in isolation on {inv.question.target}: {first.reason}"
        f"{_too_large_a_sum(inv, evidence.feed, first)}; "
        f"{'it accounts' if fault.named == 1 else f'{fault.named} such ops account'} for {percent(fault.explained)} of "
        "the output error",
        culprits=fault.culprits,
        next=[reduce_command(inv.question), run_command(inv.question, "--onnx-outputs", first.value)],
    )


def _too_large_a_sum(inv: Investigation, feed: Feed, culprit: Culprit) -> str:
    """Return that an op which loses its answer adds up to more than its format holds, as the end of a clause."""
    lost = inv.precision in ROUNDED and is_lost(culprit.local_error or 0.0)
    for each in excesses(scanned(inv, feed), inv.precision, sums=True) if lost else ():
        if each.value == culprit.value:
            beyond = f"{each.what} reaches {magnitude(each.magnitude)}, an overflow if it is added up in"
            return f", and {beyond} {inv.precision.value}: keep the op in fp32"
    return ""


def a_habit(inv: Investigation, evidence: Evidence, fault: Blame) -> bool:
    """Return whether most ops of these kinds have the blamed error, as with a way of rounding sums.

    Where rounding explains the outputs, that is no fault of single ops; one that is far beyond its floor still is.
    """
    local = evidence.local
    if local is None:
        return False
    values = [culprit.value for culprit in fault.culprits]
    if any(beyond_fp32(local.floor_ratio(value)) for value in values):
        return False
    beyond = {value for value, _ in suspects(local)}
    for kind in {culprit.op_type for culprit in fault.culprits}:
        nodes = [node for node in inv.model.graph.nodes if node.op_type == kind]
        measured = [value for node in nodes for value in node.outputs if value in local.metrics]
        if not is_habit(sum(value in beyond for value in measured), len(measured)):
            return False
    return True
