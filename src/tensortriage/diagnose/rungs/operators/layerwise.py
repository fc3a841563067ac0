"""Where does the error show? Every layer of the instrumented target against the reference, each over its floor.

It is skipped where the answer would change nothing: the outputs' error is predicted by the target's format, and other
builds are no worse: they are the same, or were compared.
"""

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.in_context.layers import QUESTION, layers
from tensortriage.diagnose.measurements.outputs import noise_of
from tensortriage.diagnose.measurements.soundness import builds_vary
from tensortriage.diagnose.rungs.number_format.predicted import settled_by_outputs
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.investigation import Investigation


@rung(
    QUESTION,
    reads=("results", "floors", "builds_compared"),
    gives=("in_context", "in_context_moved", "in_context_judged"),
    cost="a build and a run, with all values marked",
)
def layer_wise(inv: Investigation, evidence: Evidence) -> Answer:
    """Compare every layer on the instrumented target, and record whether instrumenting changed the answer."""
    if settled_by_outputs(inv, evidence) and (builds_vary(inv) is False or evidence.builds_compared > 1):
        inv.record.answered(QUESTION, f"skipped: {noise_of(inv)} predicts the error of every output")
        return Answer()
    return Answer(findings=layers(inv, evidence.worst_feed, evidence.floors.target if evidence.floors else {}))
