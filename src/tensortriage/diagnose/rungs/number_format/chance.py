"""Does rounding explain the error, as chance has it? Asked where every op is right alone.

What rounding costs an output is predicted by one evaluation, which is one draw: the roundings of a healthy engine are
others. Where an output has many elements that are off independently, draws are alike; where few numbers decide all of
them, as where a short signal is upsampled, they are not: the error of a vocoder's 80 samples in bf16 was 0.4 to 1.0 %
over twelve feeds that bf16 cannot tell apart. So the model is evaluated, rounded and not, on inputs moved by less than
the format can tell, and the largest error of these draws is what rounding may cost.
"""

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.judging import judge_of
from tensortriage.diagnose.measurements.suggested_commands import layers_command, precision_command
from tensortriage.diagnose.rungs.number_format.explaining import facts, rounding_verdict
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.confidence import FREEDOMS_EXPLAIN
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.envelope.costs import drawn, of_draws
from tensortriage.errors import EngineError, ModelError, UsageError
from tensortriage.values.text import error_size

QUESTION = "may rounding cost as much by chance?"


@rung(
    QUESTION,
    reads=("results", "floors", "local", "wrong_together"),
    cost="24 runs of the reference",
    ends=(VerdictKind.ROUNDING,),
)
def rounding_by_chance(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Is the error what rounding costs on inputs that the format cannot tell from these, every op being right alone?"""
    worst = evidence.worst_feed
    judge = judge_of(inv, worst, floors=evidence.floors, local=evidence.local)
    if evidence.local is None or evidence.wrong_together or worst.decided is not None or inv.question.tolerance:
        return None
    names = judge.standing_out
    if not names or any(worst.metrics[name].nonfinite_mismatch or worst.metrics[name].exact for name in names):
        return None
    for chance in judge.of_the_model(of_draws):
        try:
            errors = drawn(judge.setting, names, chance.draws)
        except (EngineError, ModelError, UsageError) as problem:
            inv.record.answered(QUESTION, f"unknown: the model cannot be evaluated that way: {problem.message}")
            return None
        found = judge.against((chance,), {name: max(each, default=0.0) for name, each in errors.items()}, names)
        if not judge.right_alone(found):
            return None
        name = found.worst
        words = (
            f"rounding to {inv.precision.value} costs output '{name}' {error_size(min(errors[name], default=0.0))} to "
            f"{error_size(found.predicted[name])} on inputs that it cannot tell apart"
        )
        answer = f"{'yes' if found.explains else 'no'}: {words}"
        inv.record.answered(QUESTION, answer, drawn=errors, draws=chance.draws, **facts(found, worst))
        if found.explains:
            return rounding_verdict(
                inv,
                evidence,
                found.explanations,
                FREEDOMS_EXPLAIN,
                f"{words}; the target is off by {error_size(worst.errors[name])} ({found.gap} against the largest), "
                "and every op is right alone; no op is to blame",
                [layers_command(inv.question), *precision_command(inv.question)],
            )
    return None
