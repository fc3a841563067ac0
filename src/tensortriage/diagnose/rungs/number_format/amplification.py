"""Is it the model that turns rounding into large errors? Then no engine can be blamed for them.

The floor from float64 sees how the reference's own rounding grows. It does not see what hangs on one rounding that
happened to agree: a Floor of a whole number, an ArgMax of equals, a threshold met exactly, a chaotic recurrence.
So the inputs of the *reference* are moved by one unit in the last place, several times: an engine cannot be asked to be
closer to the reference than the reference is to itself on inputs that no float32 can tell apart from rounding.
"""

from tensortriage.compare.judgement.relative_error import ratio_of
from tensortriage.compare.judgement.within import beyond_fp32, within_fp32
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.local_errors.local import Local, local_errors
from tensortriage.diagnose.measurements.moved_inputs import amplified
from tensortriage.diagnose.rungs.number_format.explaining import held, rounding_verdict
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import AMPLIFIED, AMPLIFIED_UNPROVEN
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.envelope.explanations import ExplanationKind, explanations_of
from tensortriage.errors import EngineError
from tensortriage.values.text import error_size

QUESTION = "does the model amplify rounding?"


@rung(
    QUESTION, reads=("results", "local"), gives=("local",), cost="4 runs of the reference", ends=(VerdictKind.ROUNDING,)
)
def ill_conditioned(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Do the reference's own outputs move as much when its inputs move by one unit in the last place?"""
    worst, (amplification,) = evidence.worst_feed, explanations_of(ExplanationKind.AMPLIFICATION)
    if inv.precision not in amplification.formats or any(m.nonfinite_mismatch for m in worst.metrics.values()):
        return None
    try:
        moved = amplified(inv, evidence.feed, amplification.draws)
    except EngineError as error:
        inv.answered(QUESTION, f"unknown: {error.message}")
        return None
    found = held(worst, moved, (amplification,), allows=lambda _, error, limit: within_fp32(error, limit))
    name = max(found.gaps or worst.errors, key=lambda n: worst.errors[n])
    facts = found.facts(worst) | {"moved": moved, "draws": amplification.draws}
    words = f"one unit in the last place of the inputs moves output '{name}' by {error_size(moved.get(name))}"
    if not found.gaps or not found.explains:
        inv.answered(QUESTION, f"no: {words}, the error is {error_size(worst.errors[name])}", **facts)
        return None
    findings, confidence, alone = Findings(), AMPLIFIED, "every op alone is as close as a healthy engine's is"
    try:
        local = evidence.local or local_errors(inv, evidence.feed)
    except EngineError as error:
        words += "; the ops could not be run one by one"
        confidence, alone = AMPLIFIED_UNPROVEN, f"the ops could not be run alone: {error.message}"
    else:
        findings = Findings(local=local)
        if guilty := beyond_rounding(local):
            inv.answered(QUESTION, f"yes: {words}, but '{guilty}' is wrong by itself", **facts)
            return Answer(findings=findings)
    inv.answered(QUESTION, f"yes: {words}", **facts)
    verdict = rounding_verdict(
        inv,
        confidence,
        "the model amplifies rounding: moving the reference's inputs by one unit in the last place moves output "
        f"'{name}' by {error_size(moved[name])}, the target's error is {error_size(worst.errors[name])}; {alone}",
    )
    return Answer(verdict, findings)


def beyond_rounding(local: Local) -> str:
    """Return a value whose op is wrong by itself beyond what healthy kernels differ; empty when there is none."""
    if local.misshapen:
        return next(iter(local.misshapen))
    for name in local.metrics:
        if beyond_fp32(ratio_of(local.error(name), local.floors.target.get(name))):
            return name
    return ""
