"""Does the target err as healthy engines of its class of hardware do? Asked of the model, before any op is run alone.

Where the class is known, so is what engines of it are expected to choose: GPUs keep the sums of fp16 products in fp16.
The model is evaluated under these choices, all of its values at once. If neither an output nor anything that was seen
inside is farther off than that predicts, no op is to blame, and the slow questions (every op alone, pieces of several)
are spared.

Except where marking the values moved the outputs of a target whose compiler fuses on behind the plan that it tells:
what was seen inside is another program then. There the functions of the model are run with what feeds them first.
"""

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.judging import judge_of
from tensortriage.diagnose.rungs.number_format.explaining import facts, first_explaining, freedoms_explain, in_words
from tensortriage.diagnose.rungs.number_format.freedoms_taken import function_pieces, wrong_when_fused
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind

QUESTION = "is the error what this class of hardware is expected to make?"


@rung(
    QUESTION,
    reads=("results", "floors", "in_context", "in_context_moved", "wrong_together"),
    gives=("wrong_together",),
    cost="1 to 3 evaluations",
    ends=(VerdictKind.ROUNDING,),
)
def expected_choices(inv: Investigation, evidence: Evidence) -> Answer | Conclusion | None:
    """Does what engines of the target's class choose explain the outputs and every value that was seen inside?"""
    if not evidence.in_context or evidence.floors is None or evidence.wrong_together:
        return None
    judge = judge_of(inv, evidence.worst_feed, floors=evidence.floors, inside=evidence.in_context)
    found = first_explaining(inv, judge, QUESTION, judge.expected())
    if found is None:
        return None
    told, seen = in_words(inv, found.explanations), len(judge.inside())
    predicts = f"{told}; output '{found.worst}' is {found.gap} against what that predicts"
    answer = f"yes: {predicts}" if found.explains else f"no: {found.why_not}"
    inv.record.answered(QUESTION, answer, **facts(found, evidence.worst_feed), values=seen)
    if not found.explains:
        return None
    fuses = evidence.in_context_moved and inv.question.hardware.hides_fusions
    if fuses and (wrong := wrong_when_fused(inv, function_pieces(inv, evidence))):
        return wrong
    also = f", and the same holds for {seen} tensors inside"
    return freedoms_explain(inv, evidence, found, f"{told}, as engines of its class do", also)
