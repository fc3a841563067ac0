"""Is the error no larger than rounding to the requested format predicts? Then no op is to blame."""

import math

from tensortriage.compare.judgement.relative_error import RELATIVE_RMS, error_of, say, say_gap
from tensortriage.compare.judgement.within import is_too_coarse, near_prediction, prediction_gap_db, within_prediction
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.outputs import FeedResult, noise_of
from tensortriage.diagnose.rungs.number_format.format_range import described
from tensortriage.diagnose.rungs.number_format.freedoms_taken import (
    FUSED,
    function_pieces,
    words_of_pieces,
    wrong_when_fused,
)
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import ROUNDING_EXPLAINS
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.envelope.floors import PREDICTED
from tensortriage.envelope.hardware import Hardware
from tensortriage.runs.budget import BudgetSpent
from tensortriage.values.dtype import Precision


@rung(
    "does rounding explain the error?",
    reads=("results", "floors", "ranges", "in_context", "in_context_moved"),
    gives=("rounded", "wrong_together"),
)
def rounding(inv: Investigation, evidence: Evidence) -> Answer:
    """Does rounding to the requested format alone explain the error at the outputs?"""
    if inv.precision not in PREDICTED or evidence.floors is None:
        return Answer()
    question = f"does rounding to {inv.precision.value} explain the error?"
    result = evidence.worst
    predictions = {name: predicted_of(evidence, name) for name in result.errors}
    gaps = {name: gap_of(result, name, predicted) for name, predicted in predictions.items()}
    unexplained = [name for name in gaps if not within_prediction(gaps[name], result.metrics[name].count)]
    worst = max(gaps, key=lambda name: gaps[name])
    by_chance = not unexplained and not all(map(near_prediction, gaps.values()))
    inside = inside_beyond(inv, evidence) if by_chance else None
    inv.answered(
        question,
        f"{'no' if unexplained else 'yes'}: output '{worst}' is {say_gap(gaps[worst])} against the prediction"
        + (f", but '{inside[0]}' inside is {say_gap(inside[1])}" if inside else ""),
        gap_db=gaps,
        unexplained=unexplained,
        predicted_error=predictions,
        measured_error=dict(evidence.worst.errors),
    )
    if unexplained:
        return Answer()
    told = ""
    if inside is None and Hardware.of(inv.question.target) is Hardware.NPU:  # whose compilers fuse behind their plans
        try:
            pieces = function_pieces(inv, evidence)
        except BudgetSpent:  # what is known stands
            inv.unasked(FUSED)
            pieces = []
        if answer := wrong_when_fused(inv, pieces):
            return answer
        taken = [piece for piece in pieces if piece.taken]
        told = f"; within that, {words_of_pieces(inv, taken)}" if taken else ""
    name, _, _ = result.worst
    look = [inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", "mark", "all")]
    coarse = any(is_too_coarse(error_of(result.metrics[name])) for name in gaps)
    verdict = inv.verdict(
        VerdictKind.ROUNDING,
        ROUNDING_EXPLAINS,
        f"rounding to {inv.precision.value} explains the error: output '{name}' "
        f"{result.in_words(name, noise_of(inv))}{against(result, name, predictions[name], gaps[name])}; "
        "no op is to blame" + told + (too_coarse(inv, evidence) if coarse else ""),
        next=[*precision_command(inv), *look] if coarse else [*look, *precision_command(inv)],
    )
    return Answer(verdict) if inside is None else Answer(findings=Findings(rounded=verdict))


def settled_by_outputs(inv: Investigation, evidence: Evidence) -> bool:
    """Say whether `rounding` explains the outputs whatever is seen inside, and leaves enough of the signal.

    Not where an output is beyond its prediction for its few elements alone, nor on NPUs, whose functions are looked
    into; see `rounding`. Where the format is too coarse for the model people want to know at which layers.
    """
    if inv.precision not in PREDICTED or evidence.floors is None or Hardware.of(inv.question.target) is Hardware.NPU:
        return False
    result = evidence.worst
    return all(
        near_prediction(gap_of(result, name, predicted_of(evidence, name)))
        and not is_too_coarse(error_of(result.metrics[name]))
        for name in result.errors
    )


def inside_beyond(inv: Investigation, evidence: Evidence) -> tuple[str, float] | None:
    """Return the first value that rounding does not explain, and by how many dB; None when there is none.

    Asked where an output is beyond its prediction and excused by having few elements only: ten numbers may be 11 dB off
    by chance. Inside, tensors are large. Nothing is said where marking values changed the outputs, or where one is
    decided.
    """
    figures, floors = evidence.in_context, evidence.floors
    if not figures or floors is None or evidence.in_context_moved or evidence.worst.decided is not None:
        return None
    for value in inv.values:
        figure = figures.get(value)
        if figure is None or figure.exact or value not in floors.target:
            continue
        gap = prediction_gap_db(figure, error_of(figure), floors.target[value])
        if not within_prediction(gap, figure.count):
            return value, gap
    return None


def predicted_of(evidence: Evidence, name: str) -> float:
    """Return the error that rounding predicts for an output; once its decisions are given, where it has any."""
    decided, floors = evidence.worst.decided, evidence.floors
    if floors is None or (decided is not None and name in decided.behind):
        floors = evidence.worst.floors
    return floors.target.get(name, 0.0)


def gap_of(result: FeedResult, name: str, predicted: float) -> float:
    """Return by how many dB an output exceeds its prediction; inf after a decision that rounding does not explain."""
    decided, figure = result.decided, result.metrics[name]
    if decided is not None and name in decided.behind:
        if not decided.valid(name, rounded=True):
            return math.inf
        return prediction_gap_db(figure, error_of(figure), predicted)
    return prediction_gap_db(figure, result.errors[name], predicted)


def against(result: FeedResult, name: str, predicted: float, gap: float) -> str:
    """Return the prediction for a sentence; nothing for what is all decided."""
    return "" if result.measure(name) != RELATIVE_RMS else f", predicted {say(predicted)} ({say_gap(gap)})"


def too_coarse(inv: Investigation, evidence: Evidence) -> str:
    """Return what to say where little of the signal is left; names the first op whose values the format lacks."""
    words = f", but {inv.precision.value} is too coarse for this model"
    for row in evidence.ranges.rows:
        for misfit in row.misfits_in(inv.precision):
            if misfit.cannot and not row.constant:
                return f"{words}: {described(row)} {misfit.words}"
    return words


def precision_command(inv: Investigation) -> list[str]:
    """Return the command that finds the nodes to keep in more bits, where a model can be typed in the format."""
    if inv.precision not in (Precision.FP16, Precision.BF16):
        return []
    return [inv.command("debug precision", "--target", str(inv.question.target), "-o", "mixed.onnx")]


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
