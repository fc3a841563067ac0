"""Does rounding explain the error, as chance has it? Asked where every op is right alone.

What rounding costs an output is predicted by one evaluation, which is one draw: the roundings of a healthy engine are
others. Where an output has many elements that are off independently, draws are alike; where few numbers decide all of
them, as where a short signal is upsampled, they are not: the error of a vocoder's 80 samples in bf16 was 0.4 to 1.0 %
over twelve feeds that bf16 cannot tell apart. So the model is evaluated, rounded and not, on inputs moved by less than
the format can tell, and the largest error of these draws is what rounding may cost.
"""

from tensortriage.compare.judgement.within import near_prediction, prediction_gap_db
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.representatives import suspicious
from tensortriage.diagnose.measurements.moved_inputs import errors_by_chance
from tensortriage.diagnose.measurements.suggested_commands import precision_command
from tensortriage.diagnose.rungs.number_format.explaining import held, rounding_verdict
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.confidence import FREEDOMS_EXPLAIN
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.envelope.explanations import ExplanationKind, explanations_of
from tensortriage.errors import EngineError, ModelError, UsageError
from tensortriage.values.text import error_size

QUESTION = "may rounding cost as much by chance?"


@rung(
    QUESTION,
    reads=("results", "local", "wrong_together"),
    cost="24 runs of the reference",
    ends=(VerdictKind.ROUNDING,),
)
def rounding_by_chance(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Is the error what rounding costs on inputs that the format cannot tell from these, every op being right alone?"""
    local, worst, (chance,) = evidence.local, evidence.worst_feed, explanations_of(ExplanationKind.CHANCE)
    if inv.precision not in chance.formats or local is None or suspicious(local):
        return None
    if evidence.wrong_together or worst.decided is not None or inv.question.tolerance is not None:
        return None
    failing = [name for name, within in worst.within.items() if not within]
    if any(figure.nonfinite_mismatch or figure.exact for figure in map(worst.metrics.__getitem__, failing)):
        return None
    try:
        drawn = errors_by_chance(inv, evidence.feed, failing, chance.draws)
    except (EngineError, ModelError, UsageError) as problem:
        inv.answered(QUESTION, f"unknown: the model cannot be evaluated that way: {problem.message}")
        return None
    largest = {name: max(errors, default=0.0) for name, errors in drawn.items()}
    found = held(worst, largest, (chance,), allows=lambda *each: near_prediction(prediction_gap_db(*each)))
    name = found.worst
    words = (
        f"rounding to {inv.precision.value} costs output '{name}' {error_size(min(drawn[name], default=0.0))} to "
        f"{error_size(largest[name])} on inputs that it cannot tell apart"
    )
    answer = f"{'yes' if found.explains else 'no'}: {words}"
    inv.answered(QUESTION, answer, drawn=drawn, draws=chance.draws, **found.facts(worst))
    if not found.explains:
        return None
    return rounding_verdict(
        inv,
        FREEDOMS_EXPLAIN,
        f"{words}; the target is off by {error_size(worst.errors[name])} ({found.gap} against the largest), and every "
        "op is right alone; no op is to blame",
        *precision_command(inv),
    )
