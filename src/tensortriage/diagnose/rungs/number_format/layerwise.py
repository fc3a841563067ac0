"""Where does the error show? Every layer of the instrumented target against the reference, each over its floor.

It is not asked where the answer would change nothing: the outputs are off by what the target's format predicts, and
other builds are no worse: they are the same, or were compared.

Engines that choose kernels by timing them time others where a value is marked inside of what they run as one, which
takes longer than the deployed build and shows another program. Of those, values at the seams of the plan are marked.
"""

import math
from collections.abc import Mapping

from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.judgement.within import beyond_fp32
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.marked_values import asked_values
from tensortriage.diagnose.measurements.outputs import FeedResult, noise_of
from tensortriage.diagnose.measurements.soundness import WORDS, builds_vary
from tensortriage.diagnose.rungs.number_format.predicted import settled_by_outputs
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.errors import EngineError
from tensortriage.runs.observation.experiment import Measurement
from tensortriage.runs.outcome import Outcome

QUESTION = "what do the layers look like?"


def alike(one: float, other: float) -> bool:
    """Whether two figures are equal; two that could not be computed are."""
    return one == other or (math.isnan(one) and math.isnan(other))


@rung(
    QUESTION,
    reads=("results", "floors", "builds_compared"),
    gives=("in_context", "in_context_moved", "in_context_judged"),
    cost="a build and a run, all values marked",
)
def layer_wise(inv: Investigation, evidence: Evidence) -> Answer:
    """Compare every layer on the instrumented target, and say whether instrumenting changed the answer."""
    if settled_by_outputs(inv, evidence) and (builds_vary(inv) is False or evidence.builds_compared > 1):
        inv.record.answered(QUESTION, f"not asked: every output is off by what {noise_of(inv)} predicts")
        return Answer()
    return Answer(findings=layers(inv, evidence.worst_feed, evidence.floors.target if evidence.floors else {}))


def marked_figures(inv: Investigation, worst: FeedResult, *, build: int = 0) -> Measurement:
    """Return figures of every value in a build with all of them marked.

    Raises:
        EngineError: When the target does not build or run so.
    """
    golden = inv.golden.of(worst.feed)
    return inv.lab.figures(
        inv.question.target,
        inv.model,
        worst.feed,
        asked_values(inv, golden),
        against=golden,
        what=f"every layer on {inv.question.target}",
        build=build,
        tolerances=inv.question.tolerances,
        partly=True,
    )


def layers(inv: Investigation, worst: FeedResult, floors: Mapping[str, float]) -> Findings:
    """Return the figures of every layer on the feed that fails worst; nothing where marking them all fails."""
    golden = inv.golden.of(worst.feed)
    asked = asked_values(inv, golden)
    try:
        shown = marked_figures(inv, worst)
    except EngineError as error:
        inv.record.answered(
            QUESTION,
            f"unknown: with every tensor marked the target {WORDS[Outcome.of(error).kind]}",
            reason=error.message,
        )
        return Findings()
    marked = shown.figures
    moved = [
        name
        for name, figure in worst.metrics.items()
        if name in marked.metrics and not alike(marked.metrics[name].rms_error, figure.rms_error)
    ]
    makers = {value: node for value in asked if value in golden and (node := inv.model.graph.producer(value))}
    errors = {value: error_of(figure) for value, figure in marked.metrics.items()}
    above = [value for value in makers if beyond_fp32(ratio_of(errors.get(value), floors.get(value)))]
    answer = f"{len(above)} of {len(makers)} tensors are above {MATCH_FACTOR:g}x their floor"
    if above:
        answer += f", the first is '{above[0]}' ({makers[above[0]].op_type})"
    if marked.misshapen:
        answer += f"; {len(marked.misshapen)} have another shape or type, the first is '{next(iter(marked.misshapen))}'"
    answer += "; marking moved the outputs" if moved else "; marking left the outputs as they were"
    if hidden := shown.unseen.sentence():
        answer += f"; {hidden}"
    inv.record.answered(
        QUESTION,
        answer,
        tensors=len(makers),
        above=above[:20],
        outputs_moved_by_marking=moved,
        observation="instrumented",
        refused=dict(shown.unseen.refused),
        left_out=list(shown.unseen.left_out),
        seen=dict(inv.lab.tally.seen),
    )
    return Findings(in_context=marked.metrics, in_context_judged=marked.judged, in_context_moved=tuple(moved))
