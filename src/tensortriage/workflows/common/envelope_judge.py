"""The judge of a search without a tolerance of the user's: what a healthy engine may be off by at the outputs."""

from tensortriage.compare.judgement.output_judge import OutputJudge
from tensortriage.diagnose.measurements.output_limits import output_limits
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.inputs.feed import Feed


def judge_of(inv: Investigation, feed: Feed) -> OutputJudge:
    """Return the judge of an investigation.

    What was measured before is known again, so that a search which goes on later gets the same answers. An output that
    is lost in the format fails: to know why is what a reduction is asked for.
    """
    key, notes = inv.lab.key(inv.question.target, inv.model, feed, "limits of the outputs"), inv.lab.case.checks

    def measure() -> dict[str, float]:
        outputs = [spec.name for spec in inv.model.outputs if spec.name in inv.values]
        found = output_limits(inv, feed, outputs, golden=inv.golden(feed))
        limits = {name: limit.error for name, limit in found.items()}
        notes.put(key, "what a healthy engine may err at the outputs", limits, seconds=0.0)
        return limits

    narrow = inv.precision in ROUNDED
    return OutputJudge(inv.question.tolerance, measure, narrow, notes.get(key, dict[str, float]) or {})
