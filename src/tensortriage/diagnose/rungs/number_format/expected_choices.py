"""Does the target err as healthy engines of its class of hardware do? Asked of the model, before any op is run alone.

Where the class is known, so is what engines of it are expected to choose: GPUs keep the sums of fp16 products in fp16.
The model is evaluated under these choices, all of its values at once. If neither an output nor anything that was seen
inside is farther off than that predicts, no op is to blame, and the slow questions (every op alone, pieces of several)
are spared. A fault shows at the value where it is made, where the predicted error is still small.

Except where marking the values moved the outputs of an NPU: its compiler fuses on behind the plan that it tells, and
what was seen inside is another program. There the functions of the model are run with what feeds them first.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from tensortriage.compare.judgement.relative_error import error_of, say, say_gap
from tensortriage.compare.judgement.within import healthy_limit, prediction_gap_db, within_healthy, within_prediction
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.output_limits import expected_freedoms
from tensortriage.diagnose.rungs.number_format.freedoms_taken import (
    function_pieces,
    wrong_when_fused,
)
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import FREEDOMS_EXPLAIN
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.envelope.allowances import whole_model
from tensortriage.envelope.floors import PREDICTED
from tensortriage.envelope.freedoms import FP16_RESULTS_CUT, Freedom, freedoms_of
from tensortriage.envelope.hardware import Hardware
from tensortriage.errors import EngineError, UsageError

QUESTION = "is the error what this class of hardware is expected to make?"


@rung(
    QUESTION, reads=("results", "floors", "in_context", "in_context_moved", "wrong_together"), gives=("wrong_together",)
)
def expected_choices(inv: Investigation, evidence: Evidence) -> Answer | Verdict | None:
    """Does what engines of the target's class choose explain the outputs and every value that was seen inside?"""
    freedoms, inside = expected_freedoms(inv), seen_inside(evidence)
    if not freedoms or not evidence.in_context or evidence.floors is None or evidence.wrong_together:
        return None
    if not inv.question.trusts_float64 or inv.question.kept:
        return None
    values = [value for value in inv.values if value in inside or value in evidence.worst.errors]
    chosen, predicted, beyond = freedoms, dict[str, float](), ""
    for chosen in dict.fromkeys((freedoms[:1], freedoms, (*freedoms, *_seldom(inv)))):
        try:
            predicted = whole_model(inv, inv.model, evidence.feed, values, freedoms=chosen, precision=inv.precision)
        except (EngineError, UsageError) as problem:
            inv.answered(QUESTION, f"unknown: the model cannot be evaluated that way: {problem.message}")
            return None
        if not (beyond := first_beyond(inv, evidence, inside, predicted)):
            break
    told = "; ".join(freedoms_in_words(inv, freedom) for freedom in chosen)
    worst = evidence.worst
    name, error, _ = worst.worst
    gap = prediction_gap_db(worst.metrics[name], error, predicted.get(name, 0.0))
    inv.answered(
        QUESTION,
        f"no: {beyond}" if beyond else f"yes: {told}; output '{name}' is {say_gap(gap)} against what that predicts",
        freedoms=[freedom.name for freedom in chosen],
        predicted_error={output: predicted.get(output, 0.0) for output in worst.errors},
        measured_error=dict(worst.errors),
        values=len(inside),
    )
    if beyond:
        return None
    fuses = evidence.in_context_moved and Hardware.of(inv.question.target) is Hardware.NPU
    if fuses and (answer := wrong_when_fused(inv, function_pieces(inv, evidence))):
        return answer
    avoided = sorted({freedom.avoided for freedom in chosen if freedom.avoided})
    return inv.verdict(
        VerdictKind.ROUNDING,
        FREEDOMS_EXPLAIN.on(inv.inputs_word),
        f"no op is to blame: {told}, as engines of its class do; output '{name}' has relative error {say(error)}, "
        f"predicted {say(predicted.get(name))} ({say_gap(gap)}), and the same holds for {len(inside)} tensors inside"
        + "".join(f"; to avoid it, {words}" for words in avoided),
        next=[inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", "mark", "all")],
    )


def seen_inside(evidence: Evidence) -> Mapping[str, Metrics]:
    """Return the figures of inner values of the target's full run that have a floor and are no exact types."""
    if evidence.floors is None:
        return {}
    figures = (evidence.in_context or {}).items()
    return {value: figure for value, figure in figures if value in evidence.floors.fp32 and not figure.exact}


def first_beyond(
    inv: Investigation, evidence: Evidence, inside: Mapping[str, Metrics], predicted: Mapping[str, float]
) -> str:
    """Return in words the first value that is farther off than predicted, inside before outputs; empty if none is."""
    floors = evidence.floors
    assert floors is not None
    rounded = floors.target if inv.precision in PREDICTED else {}
    for value in inv.values:
        if (figure := inside.get(value)) is None:
            continue
        limit = healthy_limit(figure.count, floors.fp32[value], rounded.get(value), predicted.get(value))
        if not within_healthy(error_of(figure), limit.error):
            return (
                f"'{value}' inside has relative error {say(error_of(figure))}, at most {say(limit.error)} is expected"
            )
    worst = evidence.worst
    for name, error in worst.errors.items():
        gap = prediction_gap_db(worst.metrics[name], error, predicted.get(name, 0.0))
        if not worst.within[name] and not within_prediction(gap, worst.metrics[name].count):
            return f"output '{name}' is {say_gap(gap)} against what that predicts"
    return ""


def _seldom(inv: Investigation) -> tuple[Freedom, ...]:
    """Return what engines of the target's class choose in some ops, and which of them is not known."""
    op_types = {node.op_type for node in inv.model.graph.nodes}
    here = freedoms_of(Hardware.of(inv.question.target), inv.precision)
    return tuple(each for each in (FP16_RESULTS_CUT,) if each in here and each.concerns(op_types))


def freedoms_in_words(inv: Investigation, freedom: Freedom) -> str:
    """Return a choice with the operators it concerns: ``2 Conv and Gemm: sums kept in fp16, usual on GPUs``."""
    kinds = Counter(node.op_type for node in inv.model.graph.nodes if node.op_type in freedom.operators)
    ops: Sequence[str] = [kind if count == 1 else f"{count} {kind}" for kind, count in kinds.most_common()]
    return f"{' and '.join(ops)}: {freedom.words}" if ops else freedom.words
