"""Is the error no larger than rounding to the requested format predicts? Then no op is to blame."""

import math
from collections.abc import Mapping

from tensortriage.compare.judgement.relative_error import RELATIVE_RMS, error_of, say_gap
from tensortriage.compare.judgement.within import (
    Limit,
    is_too_coarse,
    near_prediction,
    prediction_gap_db,
    within_prediction,
)
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.outputs import FeedResult, noise_of
from tensortriage.diagnose.measurements.suggested_commands import layers_command, precision_command
from tensortriage.diagnose.rungs.number_format.explaining import Held, first_inside
from tensortriage.diagnose.rungs.number_format.format_range import described
from tensortriage.diagnose.rungs.number_format.freedoms_taken import (
    FUSED,
    function_pieces,
    may_round_inside,
    words_of_pieces,
    words_of_wrong,
    wrong_when_fused,
)
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import ROUNDING_EXPLAINS
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.envelope.explanations import PREDICTED, ExplanationKind, explanations_of
from tensortriage.runs.budget import BudgetSpent
from tensortriage.values.text import error_size


@rung(
    "does rounding explain the error?",
    reads=("results", "floors", "ranges", "in_context", "in_context_moved"),
    gives=("rounded", "wrong_together"),
    cost="nothing new",
    ends=(VerdictKind.ROUNDING,),
)
def rounding(inv: Investigation, evidence: Evidence) -> Answer:
    """Does rounding to the requested format alone explain the error at the outputs?"""
    if inv.precision not in PREDICTED or evidence.floors is None:
        return Answer()
    question = f"does rounding to {inv.precision.value} explain the error?"
    result = evidence.worst_feed
    predictions = {name: predicted_of(evidence, name) for name in result.errors}
    gaps = {name: gap_of(result, name, predicted) for name, predicted in predictions.items()}
    unexplained = [name for name in gaps if not within_prediction(gaps[name], result.metrics[name].count)]
    found = Held(
        explanations_of(ExplanationKind.FORMAT), predictions, gaps, unexplained, inside_beyond(inv, evidence, gaps)
    )
    inside = found.inside if not unexplained else None
    inv.answered(
        question,
        f"{'no' if unexplained else 'yes'}: output '{found.worst}' is {found.gap} against the prediction"
        + (f", but {found.why_not}" if inside else ""),
        unexplained=unexplained,
        **found.facts(result),
    )
    if unexplained:
        return Answer()
    told = ""
    if inside is None and inv.hardware.hides_fusions:
        try:
            pieces = function_pieces(inv, evidence)
        except BudgetSpent:  # what is known stands
            inv.unasked(FUSED)
            pieces = []
        rough = [piece for piece in pieces if piece.wrong and may_round_inside(inv, [piece.ratio])]
        if answer := wrong_when_fused(inv, [piece for piece in pieces if piece not in rough]):
            return answer
        taken = [piece for piece in pieces if piece.taken]
        told = f"; within that, {words_of_pieces(inv, taken)}" if taken else ""
        told += f"; {words_of_wrong(inv, rough)}, as a kernel that also rounds inside may be" if rough else ""
    name, _, _ = result.worst_output()
    against = f", predicted {error_size(predictions[name])} ({say_gap(gaps[name])})"
    look = [layers_command(inv)]
    coarse = any(is_too_coarse(error_of(result.metrics[name])) for name in gaps)
    verdict = inv.verdict(
        VerdictKind.ROUNDING,
        ROUNDING_EXPLAINS,
        f"rounding to {inv.precision.value} explains the error: output '{name}' "
        f"{result.in_words(name, noise_of(inv))}{against if result.measure(name) == RELATIVE_RMS else ''}; "
        f"no op is to blame{told}" + (too_coarse(inv, evidence) if coarse else ""),
        next=[*precision_command(inv), *look] if coarse else [*look, *precision_command(inv)],
    )
    return Answer(verdict) if inside is None else Answer(findings=Findings(rounded=verdict))


def settled_by_outputs(inv: Investigation, evidence: Evidence) -> bool:
    """Say whether `rounding` explains the outputs whatever is seen inside, and leaves enough of the signal.

    Not where an output is beyond its prediction for its few elements alone, nor on NPUs, whose functions are looked
    into; see `rounding`. Where the format is too coarse for the model people want to know at which layers.
    """
    if inv.precision not in PREDICTED or evidence.floors is None or inv.hardware.hides_fusions:
        return False
    result = evidence.worst_feed
    return all(
        near_prediction(gap_of(result, name, predicted_of(evidence, name)))
        and not is_too_coarse(error_of(result.metrics[name]))
        for name in result.errors
    )


def inside_beyond(inv: Investigation, evidence: Evidence, gaps: Mapping[str, float]) -> tuple[str, float, Limit] | None:
    """Return the first value inside that rounding does not explain, with its error and its limit.

    Asked where an output is beyond its prediction and excused by having few elements only: ten numbers may be 11 dB off
    by chance. Inside, tensors are large. Nothing is said where marking values changed the outputs, or where one is
    decided.
    """
    excused = not all(map(near_prediction, gaps.values()))
    if not excused or evidence.in_context_moved or evidence.worst_feed.decided is not None:
        return None
    return first_inside(inv, evidence, {})


def predicted_of(evidence: Evidence, name: str) -> float:
    """Return the error that rounding predicts for an output; once its decisions are given, where it has any."""
    decided, floors = evidence.worst_feed.decided, evidence.floors
    if floors is None or (decided is not None and name in decided.behind):
        floors = evidence.worst_feed.floors
    return floors.target.get(name, 0.0)


def gap_of(result: FeedResult, name: str, predicted: float) -> float:
    """Return by how many dB an output exceeds its prediction; inf after a decision that rounding does not explain."""
    decided, figure = result.decided, result.metrics[name]
    if decided is not None and name in decided.behind:
        if not decided.valid(name, rounded=True):
            return math.inf
        return prediction_gap_db(figure, error_of(figure), predicted)
    return prediction_gap_db(figure, result.errors[name], predicted)


def too_coarse(inv: Investigation, evidence: Evidence) -> str:
    """Return what to say where little of the signal is left; names the first op whose values the format lacks."""
    words = f", but {inv.precision.value} is too coarse for this model"
    for row in evidence.ranges.rows:
        for misfit in row.misfits_in(inv.precision):
            if misfit.cannot and not row.constant:
                return f"{words}: {described(row)} {misfit.words}"
    return words


def beyond_format(inv: Investigation, result: FeedResult) -> bool:
    """Say whether outputs fail in a way that rounding to the requested format does not explain; NaN and Inf always."""
    for name, within in result.within.items():
        metrics, error = result.metrics[name], result.errors[name]
        if within:
            continue
        rounded = inv.precision in PREDICTED and inv.question.tolerance is None and math.isfinite(error)
        gap = gap_of(result, name, result.floors.target.get(name, 0.0))
        if not rounded or not within_prediction(gap, metrics.count):
            return True
    return False
