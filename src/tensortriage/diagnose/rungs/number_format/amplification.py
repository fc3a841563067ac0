"""Is it the model that turns rounding into large errors? Then no engine can be blamed for them.

The floor from float64 sees how the reference's own rounding grows. It does not see what hangs on one rounding that
happened to agree: a Floor of a whole number, an ArgMax of equals, a threshold met exactly, a chaotic recurrence.
So the inputs of the *reference* are moved by one unit in the last place, several times: an engine cannot be asked to be
closer to the reference than the reference is to itself on inputs that no float32 can tell apart from rounding.
"""

from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.judging import judge_of
from tensortriage.diagnose.measurements.local_errors.local import local_errors
from tensortriage.diagnose.measurements.suggested_commands import layers_command
from tensortriage.diagnose.rungs.number_format.explaining import facts, rounding_verdict
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import AMPLIFIED, AMPLIFIED_UNPROVEN
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.envelope.costs import of_moved_inputs
from tensortriage.envelope.judge import beyond
from tensortriage.errors import EngineError
from tensortriage.values.text import error_size

QUESTION = "does the model amplify rounding?"


@rung(
    QUESTION,
    reads=("results", "floors", "local"),
    gives=("local",),
    cost="4 runs of the reference",
    ends=(VerdictKind.ROUNDING,),
)
def ill_conditioned(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Do the reference's own outputs move as much when its inputs move by one unit in the last place?"""
    worst = evidence.worst_feed
    judge = judge_of(inv, worst, floors=evidence.floors, local=evidence.local)
    if any(figure.nonfinite_mismatch for figure in worst.metrics.values()):
        return None
    for amplification in judge.of_the_model(of_moved_inputs):
        try:
            found = judge.held((amplification,))
        except EngineError as error:
            inv.record.answered(QUESTION, f"unknown: {error.message}")
            return None
        name = max(found.gaps or worst.errors, key=lambda n: worst.errors[n])
        moved = error_size(found.predicted.get(name))
        told = facts(found, worst) | {"moved": dict(found.predicted), "draws": amplification.draws}
        words = f"one unit in the last place of the inputs moves output '{name}' by {moved}"
        if not found.explains:
            inv.record.answered(QUESTION, f"no: {words}, the error is {error_size(worst.errors[name])}", **told)
            return None
        findings, confidence, alone = Findings(), AMPLIFIED, "every op alone is as close as a healthy engine's is"
        try:
            findings = Findings(local=evidence.local or local_errors(inv, evidence.feed))
        except EngineError as error:
            words += "; the ops could not be run one by one"
            confidence, alone = AMPLIFIED_UNPROVEN, f"the ops could not be run alone: {error.message}"
        local = findings.get("local")
        if local is not None and (guilty := next(iter(beyond(local, amplification.needs.alone or 0.0)), "")):
            inv.record.answered(QUESTION, f"yes: {words}, but '{guilty}' is wrong by itself", **told)
            return Answer(findings=findings)
        inv.record.answered(QUESTION, f"yes: {words}", **told)
        verdict = rounding_verdict(
            inv,
            evidence,
            found.explanations,
            confidence,
            "the model amplifies rounding: moving the reference's inputs by one unit in the last place moves output "
            f"'{name}' by {moved}, the target's error is {error_size(worst.errors[name])}; {alone}",
            [layers_command(inv.question)],
        )
        return Answer(verdict, findings)
    return None
