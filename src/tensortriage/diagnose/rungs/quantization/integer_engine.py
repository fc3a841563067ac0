"""Is it integer arithmetic? What an engine may do to a quantized model that computes it in integers as it should.

Written with QuantizeLinear pairs a model multiplies dequantized numbers in floating point; an engine in integers must
round its biases to int32, in units of scale times scale. Results near the middle between two steps then fall to the
other side, one step away, which is a hundred thousand times the fp32 floor and nobody's fault. So the same is done to
the model and run on the reference: a prediction, judged as that of rounding is.
"""

from tensortriage.compare.judgement.relative_error import say, say_gap
from tensortriage.compare.judgement.within import prediction_gap_db, within_prediction
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.rungs.quantization.quantized_model import output_errors
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.confidence import INTEGER_ARITHMETIC
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.model.quantization.qdq import integer_biases

QUESTION = "does integer arithmetic explain the error?"


@rung(QUESTION, reads=("results", "in_context"))
def integer_arithmetic(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Is the error of a quantized model no larger than int32 biases predict?

    Not asked where a layer holds a NaN or Inf of the target's own: a quantizer makes a number of it again, and the
    outputs may then be off by no more than biases explain.
    """
    hidden = any(figure.nonfinite_mismatch for figure in (evidence.in_context or {}).values())
    model = None if hidden else integer_biases(inv.model)
    if model is None:
        return None
    try:
        predicted = output_errors(inv, model, evidence.feed)
    except EngineError as error:
        inv.answered(QUESTION, f"unknown: {error.message}")
        return None
    worst = evidence.worst
    failing = [name for name, within in worst.within.items() if not within]
    gaps = {
        name: prediction_gap_db(worst.metrics[name], worst.errors[name], predicted.get(name, 0.0)) for name in failing
    }
    beyond = [name for name in failing if not within_prediction(gaps[name], worst.metrics[name].count)]
    name = max(failing, key=lambda each: gaps[each])
    inv.answered(
        QUESTION,
        f"{'no' if beyond else 'yes'}: output '{name}' is {say_gap(gaps[name])} against biases in int32",
        gap_db=gaps,
        predicted_error=predicted,
        measured_error=dict(worst.errors),
    )
    if beyond:
        return None
    return inv.verdict(
        VerdictKind.ROUNDING,
        INTEGER_ARITHMETIC,
        f"integer arithmetic explains the error: output '{name}' has relative error {say(worst.errors[name])}, "
        f"predicted {say(predicted.get(name))} with biases in int32 ({say_gap(gaps[name])}); no op is to blame",
        next=[inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", "mark", "all")],
    )
