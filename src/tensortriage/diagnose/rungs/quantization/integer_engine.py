"""Is it integer arithmetic? What an engine may do to a quantized model that computes it in integers as it should.

Written with QuantizeLinear pairs a model multiplies dequantized numbers in floating point; an engine in integers must
round its biases to int32, in units of scale times scale. Results near the middle between two steps then fall to the
other side, one step away, which is a hundred thousand times the fp32 floor and nobody's fault. So the same is done to
the model and run on the reference: a prediction, judged as that of rounding is.
"""

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.judging import judge_of
from tensortriage.diagnose.measurements.suggested_commands import layers_command
from tensortriage.diagnose.rungs.number_format.explaining import facts, rounding_verdict
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.confidence import INTEGER_ARITHMETIC
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.envelope.costs import of_rewrite
from tensortriage.errors import EngineError
from tensortriage.values.text import error_size

QUESTION = "does integer arithmetic explain the error?"


@rung(
    QUESTION,
    reads=("results", "floors", "in_context"),
    cost="a run of the reference",
    ends=(VerdictKind.ROUNDING,),
)
def integer_arithmetic(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Is the error of a quantized model no larger than int32 biases predict?

    Not asked where a layer holds a NaN or Inf of the target's own: a quantizer makes a number of it again, and the
    outputs may then be off by no more than biases explain.
    """
    if any(figure.nonfinite_mismatch for figure in (evidence.in_context or {}).values()):
        return None
    worst = evidence.worst_feed
    judge = judge_of(inv, worst, floors=evidence.floors)
    for each in judge.of_the_model(of_rewrite):
        try:
            found = judge.held((each,))
        except EngineError as error:
            inv.record.answered(QUESTION, f"unknown: {error.message}")
            return None
        name, word = found.worst, "yes" if found.explains else "no"
        told = facts(found, worst)
        inv.record.answered(QUESTION, f"{word}: output '{name}' is {found.gap} against biases in int32", **told)
        if found.explains:
            return rounding_verdict(
                inv,
                evidence,
                found.explanations,
                INTEGER_ARITHMETIC,
                f"integer arithmetic explains the error: output '{name}' is off by {error_size(worst.errors[name])}, "
                f"predicted {error_size(found.predicted.get(name))} with biases in int32 ({found.gap}); no op is to "
                "blame",
                [layers_command(inv.question)],
            )
    return None
