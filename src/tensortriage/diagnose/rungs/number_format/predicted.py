"""Is the error no larger than rounding to the requested format predicts? Then no op is to blame."""

import contextlib

from tensortriage.compare.judgement.relative_error import RELATIVE_RMS, error_of, say_gap
from tensortriage.compare.judgement.within import is_too_coarse, near_prediction
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.function_pieces import function_pieces, may_round_inside
from tensortriage.diagnose.measurements.judging import Seen, judge_of
from tensortriage.diagnose.measurements.outputs import FeedResult, noise_of
from tensortriage.diagnose.measurements.suggested_commands import layers_command, precision_command
from tensortriage.diagnose.rungs.number_format.explaining import facts_of, rounding_verdict
from tensortriage.diagnose.rungs.number_format.format_range import described
from tensortriage.diagnose.rungs.number_format.function_pieces import (
    FUSED,
    words_of_pieces,
    words_of_wrong,
    wrong_when_fused,
)
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import ROUNDING_EXPLAINS
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.engines.registry import resolve
from tensortriage.envelope.explanations import PREDICTED
from tensortriage.errors import UsageError
from tensortriage.runs.budget import BudgetSpent
from tensortriage.values.dtype import Precision
from tensortriage.values.text import error_size


@rung(
    "does rounding explain the error?",
    reads=("results", "floors", "ranges", "in_context", "in_context_moved"),
    gives=("rounded", "wrong_together"),
    cost="nothing new",
    ends=(VerdictKind.ROUNDING, VerdictKind.INCONCLUSIVE),
)
def rounding(inv: Investigation, evidence: Evidence) -> Answer:
    """Does rounding to the requested format alone explain the error at the outputs?"""
    if inv.precision not in PREDICTED or evidence.floors is None:
        return Answer()
    question, result = f"does rounding to {inv.precision.value} explain the error?", evidence.worst_feed
    shown = {} if evidence.in_context_moved or result.decided is not None else evidence.in_context or {}
    seen = Seen(inv, result.feed, inside=shown)
    found = judge_of(inv, result, floors=evidence.floors, seen=seen).in_format()
    inside = found.unmet
    inv.record.answered(
        question,
        f"{'no' if found.beyond else 'yes'}: output '{found.worst}' is {found.gap} against the prediction"
        + (f", but {inside}" if inside and not found.beyond else ""),
        unexplained=found.beyond,
        **facts_of(found, result),
    )
    if found.beyond:
        return Answer()
    remarks = ""
    if not inside and inv.question.hardware.hides_fusions:
        try:
            pieces = function_pieces(inv, evidence.feed)
        except BudgetSpent:  # what is known stands
            inv.record.unasked(FUSED)
            pieces = []
        rough = [piece for piece in pieces if piece.wrong and may_round_inside(inv, [piece.ratio])]
        if answer := wrong_when_fused(inv, [piece for piece in pieces if piece not in rough]):
            return answer
        taken = [piece for piece in pieces if piece.taken]
        remarks = f"; within that, {words_of_pieces(inv, taken)}" if taken else ""
        remarks += f"; {words_of_wrong(inv, rough)}, as a kernel that also rounds inside may be" if rough else ""
    name, _, _ = result.worst_output()
    against = f", predicted {error_size(found.predicted.get(name))} ({say_gap(found.gaps[name])})"
    look, coarse = (
        [layers_command(inv.question)],
        any(is_too_coarse(error_of(figure)) for figure in result.figures.values()),
    )
    verdict = rounding_verdict(
        inv,
        evidence,
        [each.name for each in found.explanations],
        ROUNDING_EXPLAINS,
        f"rounding to {inv.precision.value} explains the error: output '{name}' "
        f"{result.in_words(name, noise_of(inv))}{against if result.measure(name) == RELATIVE_RMS else ''}; "
        f"no op is to blame{_unasked(inv)}{remarks}" + (too_coarse(inv, evidence) if coarse else ""),
        [*precision_command(inv.question), *look] if coarse else [*look, *precision_command(inv.question)],
    )
    return Answer(findings=Findings(rounded=verdict)) if inside else Answer(verdict)


def _unasked(inv: Investigation) -> str:
    """Return that the target chose its format itself, and what asks for fp32, as a clause; empty where it was asked."""
    target = inv.question.target
    if "precision" in target.options:
        return ""
    wide, words = target.with_options({**target.options, "precision": Precision.FP32.value}), ""
    with contextlib.suppress(UsageError):
        words = f", {wide} is in fp32" if resolve(wide).precision is Precision.FP32 else ""
    return f"; {target.name} chooses {inv.precision.value} here by itself{words}"


def settled_by_outputs(inv: Investigation, evidence: Evidence) -> bool:
    """Return whether `rounding` explains the outputs whatever is seen inside, and leaves enough of the signal.

    Skipped where an output is beyond its prediction for its few elements alone, and on NPUs, whose functions are
    examined; see `rounding`. Where the format is too coarse for the model, users want to know at which layers.
    """
    if inv.precision not in PREDICTED or evidence.floors is None or inv.question.hardware.hides_fusions:
        return False
    result = evidence.worst_feed
    found = judge_of(inv, result, floors=evidence.floors).in_format()
    coarse = any(is_too_coarse(error_of(figure)) for figure in result.figures.values())
    return not coarse and all(map(near_prediction, found.gaps.values()))


def too_coarse(inv: Investigation, evidence: Evidence) -> str:
    """Return a clause for a mostly lost signal, naming the first op with values beyond the format."""
    words = f", but {inv.precision.value} is too coarse for this model"
    for row in evidence.ranges.rows:
        for misfit in row.misfits_in(inv.precision):
            if misfit.cannot and not row.constant:
                return f"{words}: {described(row)} {misfit.words}"
    return words


def beyond_format(inv: Investigation, result: FeedResult) -> bool:
    """Return whether rounding to the requested format leaves a failure unexplained; NaN and Inf it never explains."""
    if result.passes or inv.question.tolerance is not None or inv.precision not in PREDICTED:
        return not result.passes
    return bool(judge_of(inv, result).standing_out)
