"""Where no op can be run alone: does one freedom, taken everywhere, account for every value of the target's full run?

Some engines build the model and not the graph in which every op stands alone. What one of them is free to choose is not
known of a class of hardware either, so each freedom is tried by itself on the whole model. It explains the error where
no output and nothing that was seen inside is farther off than it predicts, and where it is taken: at most of the
operators that it concerns the error is nearer to what is predicted with it than to what is predicted without.
"""

from collections.abc import Mapping

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import is_habit, is_nearer
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.pieces import between
from tensortriage.diagnose.measurements.local_errors.representatives import suspicious
from tensortriage.diagnose.measurements.output_limits import may_be_taken
from tensortriage.diagnose.rungs.number_format.explaining import (
    first_explaining,
    freedoms_explain,
    in_words,
    seen_inside,
)
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.envelope.explanations import Explanation

QUESTION = "does one freedom of the hardware, taken everywhere, explain the error?"


@rung(
    QUESTION,
    reads=("results", "floors", "in_context", "local", "builds_choose"),
    cost="an evaluation for each",
    ends=(VerdictKind.ROUNDING,),
)
def whole_model_freedom(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Does a freedom that the target takes everywhere explain its outputs and every value that was seen inside?

    It need not be taken in the build that was seen, where builds are known to choose.
    """
    seen, chosen = len(seen_inside(evidence)), evidence.builds_choose
    if inv.hardware.has_habits or not inv.question.trusts_float64 or not seen:
        return None
    if evidence.local is not None and (not chosen or suspicious(evidence.local)):
        return None
    beyond: dict[str, str] = {}
    for together in [chosen] if chosen else may_be_taken(inv):
        if (found := first_explaining(inv, evidence, QUESTION, [together], inside=True)) is None:
            return None
        (freedom,) = together
        beyond[freedom.name] = found.why_not
        if found.explains and not chosen:
            beyond[freedom.name] = _not_taken(inv, evidence, freedom, found.predicted)
        if not beyond[freedom.name]:
            told = in_words(inv, together) + (", in some builds" if chosen else "")
            inv.answered(QUESTION, f"yes: {told}", **found.facts(evidence.worst_feed), values=seen)
            also = f", and the same holds for {seen} tensors inside"
            return freedoms_explain(inv, evidence, found, told, also)
    if beyond:
        inv.answered(QUESTION, f"no: none of {len(beyond)}", beyond=beyond)
    return None


def _not_taken(inv: Investigation, evidence: Evidence, freedom: Explanation, predicted: Mapping[str, float]) -> str:
    """Return in words that the target does not take a freedom where that would show; empty where it does."""
    floors, figures, graph = evidence.floors, evidence.in_context or {}, inv.model.graph
    known = {*figures, *evidence.feed.tensors}
    assert floors is not None
    errors = {
        value: (error_of(figures[value]), predicted[value], floors.target.get(value, 0.0))
        for value in predicted
        if value in figures and freedom.concerns([node.op_type for node in between(graph, value, known)])
    }
    shows = [value for value, (_, chosen, plain) in errors.items() if chosen > plain]
    taken = [value for value in shows if is_nearer(*errors[value])]
    return "" if shows and is_habit(len(taken), len(shows)) else f"taken at {len(taken)} of {len(shows)} values"
