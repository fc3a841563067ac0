"""Where no op can be run alone: does one freedom, taken everywhere, account for every value of the target's full run?

Some engines build the model and not the graph in which every op stands alone. What one of them is free to choose is not
known of a class of hardware either, so each freedom is tried by itself on the whole model. It explains the error where
no output and nothing that was seen inside is farther off than it predicts, and where it is taken: at most of the
operators that it concerns the error is nearer to what is predicted with it than to what is predicted without.
"""

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.judging import judge_of
from tensortriage.diagnose.measurements.local_errors.local import suspicious
from tensortriage.diagnose.rungs.number_format.explaining import facts, first_explaining, freedoms_explain, in_words
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind

QUESTION = "does one freedom of the hardware, taken everywhere, explain the error?"


@rung(
    QUESTION,
    reads=("results", "floors", "in_context", "local", "builds_choose"),
    cost="an evaluation for each",
    ends=(VerdictKind.ROUNDING,),
)
def whole_model_freedom(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Does a freedom that the target takes everywhere explain its outputs and every value that was seen inside?

    It need not be taken in the build that was seen, where builds are known to choose.
    """
    judge = judge_of(inv, evidence.worst_feed, floors=evidence.floors, inside=evidence.in_context)
    chosen = evidence.builds_choose
    if inv.question.hardware.has_habits or not inv.question.trusts_float64 or not (seen := len(judge.inside())):
        return None
    if evidence.local is not None and (not chosen or suspicious(evidence.local)):
        return None
    beyond: dict[str, str] = {}
    for together in [chosen] if chosen else judge.single():
        if (found := first_explaining(inv, judge, QUESTION, [together])) is None:
            return None
        name, why = together[0].name, found.why_not
        if found.explains and not chosen and not judge.is_taken(found):
            why = "taken at {} of {} values".format(*judge.taken_at(found))
        if not why:
            told = in_words(inv, together) + (", in some builds" if chosen else "")
            inv.record.answered(QUESTION, f"yes: {told}", **facts(found, evidence.worst_feed), values=seen)
            also = f", and the same holds for {seen} tensors inside"
            return freedoms_explain(inv, evidence, found, told, also)
        beyond[name] = why
    if beyond:
        inv.record.answered(QUESTION, f"no: none of {len(beyond)}", beyond=beyond)
    return None
