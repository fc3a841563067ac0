"""Is it integer arithmetic? What an engine may do to a quantized model that computes it in integers as it should.

Written with QuantizeLinear pairs a model multiplies dequantized numbers in floating point; an engine in integers must
round its biases to int32, in units of scale times scale. Results near the middle between two steps then fall to the
other side, one step away, which is a hundred thousand times the fp32 floor and nobody's fault. So the same is done to
the model and run on the reference: a prediction, judged as that of rounding is.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from tensortriage.compare.judgement.relative_error import say, say_gap
from tensortriage.compare.judgement.within import prediction_gap_db, within_prediction
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.diagnose.rungs.quantization.model_errors import output_errors
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.confidence import INTEGER_ARITHMETIC
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.model.quantization.qdq import integer_biases

QUESTION = "does integer arithmetic explain the error?"


@dataclasses.dataclass(frozen=True, slots=True)
class Integers:
    """What biases in int32 predict of the outputs that fail.

    Attributes:
        predicted: Relative error that they make, by output.
        gaps: Measured against predicted error in dB, by output that fails.
        beyond: Outputs that fail by more.
    """

    predicted: Mapping[str, float]
    gaps: Mapping[str, float]
    beyond: Sequence[str]

    @property
    def worst(self) -> str:
        """The failing output that is farthest above its prediction."""
        return max(self.gaps, key=lambda name: self.gaps[name])


def against_integers(inv: Investigation, result: FeedResult) -> Integers | None:
    """Compare outputs that fail with what biases in int32 predict; None for a model that is not quantized.

    Raises:
        EngineError: When the reference cannot run the model with such biases.
    """
    model = integer_biases(inv.model)
    if model is None:
        return None
    predicted = output_errors(inv, model, result.feed)
    gaps = {
        name: prediction_gap_db(result.metrics[name], result.errors[name], predicted.get(name, 0.0))
        for name, within in result.within.items()
        if not within
    }
    beyond = [name for name, gap in gaps.items() if not within_prediction(gap, result.metrics[name].count)]
    return Integers(predicted, gaps, beyond)


@rung(QUESTION, reads=("results", "in_context"))
def integer_arithmetic(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Is the error of a quantized model no larger than int32 biases predict?

    Not asked where a layer holds a NaN or Inf of the target's own: a quantizer makes a number of it again, and the
    outputs may then be off by no more than biases explain.
    """
    if any(figure.nonfinite_mismatch for figure in (evidence.in_context or {}).values()):
        return None
    worst = evidence.worst
    try:
        integers = against_integers(inv, worst)
    except EngineError as error:
        inv.answered(QUESTION, f"unknown: {error.message}")
        return None
    if integers is None:
        return None
    name = integers.worst
    gap = say_gap(integers.gaps[name])
    inv.answered(
        QUESTION,
        f"{'no' if integers.beyond else 'yes'}: output '{name}' is {gap} against biases in int32",
        gap_db=dict(integers.gaps),
        predicted_error=dict(integers.predicted),
        measured_error=dict(worst.errors),
    )
    if integers.beyond:
        return None
    return inv.verdict(
        VerdictKind.ROUNDING,
        INTEGER_ARITHMETIC,
        f"integer arithmetic explains the error: output '{name}' has relative error {say(worst.errors[name])}, "
        f"predicted {say(integers.predicted.get(name))} with biases in int32 ({gap}); no op is to blame",
        next=[inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", "mark", "all")],
    )
