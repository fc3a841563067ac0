"""The questions that take a stage of the judge's walk (`tensortriage.envelope.judge.WALK`), in its order.

Questions that look for faults stand between them. An output that one stage explains is left out of the next.
"""

import dataclasses
import functools
from collections.abc import Sequence

from tensortriage.diagnose.measurements.amplifier import amplifier
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.function_pieces import function_pieces, only_together
from tensortriage.diagnose.measurements.judging import Seen
from tensortriage.diagnose.measurements.local_errors.local import Local, suspects, suspicious
from tensortriage.diagnose.measurements.local_errors.wired_ops import Wired
from tensortriage.diagnose.measurements.suggested_commands import precision_command
from tensortriage.diagnose.rungs.number_format.explaining import GIVES, READS, Took, answer, counted, take
from tensortriage.diagnose.rungs.number_format.function_pieces import (
    facts_of_wrong,
    words_of_pieces,
    words_of_wrong,
    wrong_when_fused,
)
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import AMPLIFIED, AMPLIFIED_UNPROVEN, INTEGER_ARITHMETIC
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.envelope.costs import drawn
from tensortriage.envelope.explanations import Needs
from tensortriage.envelope.judge import AMPLIFIED as AMPLIFICATION
from tensortriage.envelope.judge import BY_CHANCE, BY_OPS, EVERYWHERE, EXPECTED, INTEGERS, Stage
from tensortriage.values.text import error_size

stage_rung = functools.partial(rung, ends=(VerdictKind.ROUNDING, VerdictKind.INCONCLUSIVE))
TAKEN = "is the error a freedom of the hardware?"
HEALTHY_ALONE = "every op in isolation is as close as on a healthy engine"


@stage_rung(
    "is the error expected of this class of hardware?",
    reads=(*READS, "in_context_moved", "wrong_together"),
    gives=(*GIVES, "wrong_together"),
    cost="1 to 3 evaluations",
)
def expected_choices(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Do the freedoms of the target's class explain the outputs and every inner value seen?

    GPUs keep the sums of fp16 products in fp16. Where that explains everything, the slow questions (every op alone,
    pieces of several) are skipped; except where marking the values moved the outputs of a target whose compiler fuses
    on behind the plan that it reports. The observed values are another program's then: the functions of the model are
    run first, with the ops that feed them.
    """
    if not evidence.in_context or evidence.floors is None or evidence.wrong_together:
        return None
    took = take(inv, evidence, expected_choices.title, EXPECTED)
    if took is None:
        return None
    predicts = f"{took.told}; output '{took.held.worst}' is {took.held.gap} against that prediction"
    verdict = took.verdict(
        f"yes: {predicts}" if took.explains else f"no: {took.held.why_not}",
        took.blameless(f"{took.told}, as engines of its class do", also_inside(took)),
        values=len(took.judge.inside()),
    )
    fuses = verdict is not None and evidence.in_context_moved and inv.question.hardware.hides_fusions
    return (wrong_when_fused(inv, function_pieces(inv, evidence.feed)) if fuses else None) or answer(took, verdict)


@stage_rung("does integer arithmetic explain the error?", reads=READS, gives=GIVES, cost="a run of the reference")
def integer_arithmetic(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Is the error of a quantized model within the prediction for integers, such as biases in int32?

    Written with QuantizeLinear pairs a model multiplies dequantized numbers in floating point; an engine in integers
    must round its biases to int32, in units of scale times scale. Results near the middle between two steps then fall
    to the other side, one step away, which is a hundred thousand times the fp32 floor and nobody's fault.
    """
    took = take(inv, evidence, integer_arithmetic.title, INTEGERS)
    if took is None:
        return None
    name, gap, yes = took.held.worst, took.held.gap, "yes" if took.explains else "no"
    words = took.held.explanations[0].words
    verdict = took.verdict(
        "" if took.held.unmet else f"{yes}: output '{name}' is {gap} against {words}",
        f"integer arithmetic explains the error: output '{name}' is off by {took.error(name)}, predicted "
        f"{took.predicted(name)} with {words} ({gap}); no op is to blame{took.avoiding}",
        sure=INTEGER_ARITHMETIC,
    )
    return answer(took, verdict)


@stage_rung("does the model amplify rounding?", reads=READS, gives=GIVES, cost="6 runs of the reference")
def ill_conditioned(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Do the reference's own outputs move as much when its inputs move by one unit in the last place, or ties fall?

    The floor from float64 shows how the reference's own rounding grows. It does not show the effect of one rounding
    that happened to agree: a Floor of a whole number, an ArgMax of equals, a threshold met exactly, a chaotic
    recurrence.
    """
    worst = evidence.worst_feed
    if any(figure.nonfinite_mismatch for figure in worst.metrics.values()):
        return None
    took = take(inv, evidence, ill_conditioned.title, AMPLIFICATION)
    if took is None:
        return None
    held, refused = took.held, took.seen.refused
    name = max(held.gaps, key=lambda n: worst.errors[n])
    moved, row = took.predicted(name), held.explanations[0]
    words = f"{'one unit in the last place of the inputs' if row.draws else row.words} moves output '{name}' by {moved}"
    told = f"no: {words}, the error is {took.error(name)}"
    culprit, where = None, ""
    if took.explains:
        if row.draws:
            culprit, where = amplifier(inv, worst, name, draws=row.draws)
        told = f"yes: {words}" + "; the ops could not be run one by one" * bool(refused)
    verdict = took.verdict(
        f"yes: {words}, but {held.unmet}" if held.unmet else told,
        f"{'the model amplifies rounding' if row.draws else 'rounding decides ties'}: {words}{where}; the target's "
        f"error is {took.error(name)}; "
        f"{f'the ops could not be run alone: {refused}' if refused else HEALTHY_ALONE}",
        sure=AMPLIFIED_UNPROVEN if refused else AMPLIFIED,
        moved=dict(held.predicted),
        draws=row.draws,
    )
    return answer(took, dataclasses.replace(verdict, culprits=[culprit]) if verdict and culprit else verdict)


@stage_rung(
    TAKEN,
    reads=(*READS, "wrong_together"),
    gives=("explained", "wrong_together"),
    cost="one evaluation; a build and a run of pieces",
)
def freedoms_taken(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Does the error of the outputs have the size that the freedoms taken by the target's ops predict?

    Every op beyond rounding is as far off as engines that take such a freedom, and no further. Where the target reports
    that it computes a function and its neighbours as one, those pieces are tested as well: a GELU may be approximated
    though each of its ops, alone, is not.
    """
    local = evidence.local
    if local is None or not local.chosen or evidence.wrong_together:
        return None
    found = function_pieces(inv, evidence.feed)
    if wrong := [piece for piece in found if piece.wrong]:
        explanation = f"not all of it: {words_of_ops(inv, local)}; but {words_of_wrong(inv, wrong)}"
        inv.record.answered(TAKEN, explanation, **facts_of_wrong(wrong))
        return Answer(findings=Findings(wrong_together=tuple(wrong)))
    pieces = only_together(inv, local, [piece for piece in found if piece.taken])
    explanation = "; ".join(filter(None, (words_of_ops(inv, local), words_of_pieces(inv, pieces))))
    took, verdict = explained_by_ops(inv, evidence, local, pieces, explanation)
    return Answer(verdict, Findings(explained=took.explained)) if took is not None else None


def taken_in_pieces(inv: Investigation, evidence: Evidence, pieces: Sequence[Wired]) -> Conclusion | None:
    """The same for freedoms that show only where several ops are computed as one, as a GELU by its tanh form."""
    local = evidence.local
    pieces = only_together(inv, local, pieces) if local else []
    return explained_by_ops(inv, evidence, local, pieces, words_of_pieces(inv, pieces))[1] if local and pieces else None


def explained_by_ops(
    inv: Investigation, evidence: Evidence, local: Local, pieces: Sequence[Wired], told: str
) -> tuple[Took | None, Conclusion | None]:
    """Predict the cost of the freedoms of ops and pieces in the whole model."""
    known = dataclasses.replace(local, harmless=suspicious(local))  # else they were blamed before
    took = take(inv, evidence, TAKEN, BY_OPS, Seen(inv, evidence.feed, inside={}, local=known, pieces=pieces))
    if took is None:
        return None, None
    left = suspects(local)
    others = f"; {len(left)} other ops are beyond their floors and do not make the error" if left else ""
    return took, took.verdict(
        f"yes: {told}" if took.explains else f"partly: {told}; {took.held.why_not}",
        took.blameless(f"{told}, as engines of its class do", others),
        ops_left=[value for value, _ in left][:12],
    )


@stage_rung(
    "does one freedom of the hardware, used everywhere, explain the error?",
    reads=(*READS, "builds_choose"),
    gives=GIVES,
    cost="an evaluation for each",
)
def whole_model_freedom(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Where no op can be run alone: does one freedom account for every value of the target's full run?

    The observed build need not take it, where builds are known to choose.
    """
    local, chosen = evidence.local, evidence.builds_choose
    if inv.question.hardware.has_habits or not inv.question.trusts_float64 or not evidence.in_context:
        return None
    if local is not None and (not chosen or suspicious(local)):
        return None
    seen = Seen(inv, evidence.feed, inside=evidence.in_context, local=local, refused="answered before")
    stage = Stage(lambda _: [chosen], Needs(inside=True)) if chosen else EVERYWHERE
    took = take(inv, evidence, whole_model_freedom.title, stage, seen)
    if took is None or not took.judge.inside():
        return None
    beyond = {held.explanations[0].name: held.why_not for held in took.taken.tried}
    explanation = took.told + (", in some builds" if chosen else "")
    verdict = took.verdict(
        f"yes: {explanation}" if took.explains else f"no: none of {len(beyond)}",
        took.blameless(explanation, also_inside(took)),
        **({"values": len(took.judge.inside())} if took.explains else {"beyond": beyond}),
    )
    return answer(took, verdict)


@stage_rung(
    "can rounding cost this much by chance?",
    reads=(*READS, "wrong_together"),
    gives=GIVES,
    cost="24 runs of the reference",
)
def rounding_by_chance(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Does rounding cost as much on inputs that the format cannot distinguish, with every op right alone?

    The cost of rounding is predicted by one evaluation, which is one draw: the roundings of a healthy engine are
    others. Where few numbers decide all elements of an output, draws are not alike: the error of a vocoder's 80 samples
    in bf16 was 0.4 to 1.0 % over twelve feeds that are equal in bf16.
    """
    worst = evidence.worst_feed
    if evidence.local is None or evidence.wrong_together or worst.decided is not None or inv.question.tolerance:
        return None
    if any(figure.nonfinite_mismatch for figure in worst.metrics.values()):
        return None
    took = take(inv, evidence, rounding_by_chance.title, BY_CHANCE)
    if took is None or took.held.unmet:
        return None
    name, draws = took.held.worst, took.held.explanations[0].draws
    errors = drawn(took.judge.setting, list(took.held.gaps), draws)
    words = (
        f"rounding to {inv.precision.value} costs output '{name}' {error_size(min(errors[name], default=0.0))} to "
        f"{took.predicted(name)} on inputs that it cannot tell apart"
    )
    verdict = took.verdict(
        f"{'yes' if took.explains else 'no'}: {words}",
        f"{words}; the target is off by {took.error(name)} ({took.held.gap} against the largest), "
        "and every op is right alone; no op is to blame",
        next=precision_command(inv.question),
        drawn=errors,
        draws=draws,
    )
    return answer(took, verdict)


def also_inside(took: Took) -> str:
    """Return the clause that values inside are explained as well."""
    return f", and the same holds for {len(took.judge.inside())} tensors inside"


def words_of_ops(inv: Investigation, local: Local) -> str:
    """Return the choices in words: ``Tanh: approximated function, usual on GPUs (local error 8.9e-06)``."""
    clauses = []
    for freedom in dict.fromkeys(local.chosen.values()):
        values = [value for value, chosen in local.chosen.items() if chosen is freedom]
        ops = counted(node.op_type for value in values if (node := inv.model.graph.producer(value)) is not None)
        worst = max((local.error(value) or 0.0 for value in values), default=0.0)
        clauses.append(f"{ops}: {freedom.words} (local error {'up to ' * (len(values) > 1)}{error_size(worst)})")
    return "; ".join(clauses)
