"""A floor of a tenth of the signal, NaN or Inf proves no engine right: which op amplifies rounding, and is any wrong?

Made-up data are then generated again (`made_up_anew`). The user's own stay: the op behind which healthy engines part is
named, and an output that is lost, as when rounding tips a number that is cast to an integer, is lost.
"""

from tensortriage.compare.judgement.within import is_lost, is_noise, within_limit
from tensortriage.diagnose.measurements.amplifier import amplifier
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.judging import Seen
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.diagnose.measurements.suggested_commands import layers_command
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.confidence import AMPLIFIED, AMPLIFIED_UNPROVEN
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.envelope.judge import beyond
from tensortriage.envelope.limits import ORDERS, ROUNDED_ONCE
from tensortriage.values.text import noise_size

QUESTION = "do healthy engines agree on the outputs?"


@rung(
    QUESTION,
    reads=("results",),
    cost="nothing new; where a floor is a tenth of an output, floors of every tensor, a build and a run of all ops",
    ends=(VerdictKind.ROUNDING, VerdictKind.INCONCLUSIVE),
)
def within_noise(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Name the op that amplifies rounding where the floor is too large to be a limit."""
    if inv.question.tolerance is not None or not evidence.results:
        return None
    result = evidence.worst_feed
    noisy = [name for name in result.errors if _acquitted_by_noise(result, name)]
    if not noisy:
        return None
    output = max(noisy, key=lambda name: result.errors[name])
    culprit, where = amplifier(inv, result, output)
    seen = Seen(inv, result.feed)
    alone = seen.alone()
    guilty = beyond(alone, 1.0) if alone is not None else []
    error, floor = result.errors[output], result.floors.fp32[output]
    differ = f"healthy engines differ by {noise_size(floor)} of output '{output}'"
    inv.record.answered(
        QUESTION,
        f"no: {differ}{where}" + (f"; '{guilty[0]}' is wrong in isolation" if guilty else ""),
        output=output,
        relative_error=error,
        floor=floor,
        wrong_alone=guilty,
    )
    lost = is_lost(error) and not guilty and not result.floors.in_fp32(output).drowns(result.figures[output])
    words = f"{inv.question.target} {result.in_words(output)}"
    healthy = "every op in isolation is as close as on a healthy engine" if alone is not None else (
        f"the ops could not be run alone: {seen.refused}"
    )  # fmt: skip
    if guilty:
        producer = inv.model.graph.producer(guilty[0])
        culprit = Culprit(producer.name, producer.op_type, guilty[0]) if producer is not None else culprit
        healthy = f"but '{guilty[0]}' is wrong in isolation"
    return Conclusion(
        VerdictKind.ROUNDING if lost else VerdictKind.INCONCLUSIVE,
        AMPLIFIED if alone is not None and not guilty else AMPLIFIED_UNPROVEN,
        f"these data make the answer noise: {differ}{where}; {words}; {healthy}",
        culprits=[culprit] if culprit is not None else [],
        next=[layers_command(inv.question)],
        allowed_by=() if guilty else (ORDERS,),
        lost=lost,
    )


def _acquitted_by_noise(result: FeedResult, name: str) -> bool:
    """Return whether an output passes though its floor is no limit, or though half of its signal is gone."""
    error, floor = result.errors[name], result.floors.fp32.get(name, 0.0)
    passes = result.within[name] and not within_limit(error, ROUNDED_ONCE)
    return passes and (is_noise(floor) or is_lost(error))
