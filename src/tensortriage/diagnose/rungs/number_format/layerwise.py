"""Where does the error show? Every layer of the instrumented target against the reference, each over its floor."""

import math

from tensortriage.compare.judgement.relative_error import ratio_of
from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.judgement.within import beyond_fp32
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.soundness import WORDS
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.errors import EngineError
from tensortriage.runs.outcome import Outcome

QUESTION = "what do the layers look like?"


def alike(one: float, other: float) -> bool:
    """Whether two figures are equal; two that could not be computed are."""
    return one == other or (math.isnan(one) and math.isnan(other))


@rung(
    QUESTION, reads=("results", "floors", "in_context"), gives=("in_context", "in_context_moved", "in_context_judged")
)
def layer_wise(inv: Investigation, evidence: Evidence) -> None:
    """Compare every layer on the instrumented target, and say whether instrumenting changed the answer."""
    since = inv.mark()
    feed = evidence.feed
    golden = inv.golden(feed)
    try:
        found = inv.measured(
            inv.question.target,
            inv.model,
            feed,
            inv.values,
            golden=golden,
            what=f"every layer on {inv.question.target}",
            tolerances=inv.tolerances,
        )
    except EngineError as error:
        inv.answered(
            QUESTION,
            f"unknown: with every tensor marked the target {WORDS[Outcome.of(error).kind]}",
            since=since,
            reason=error.message,
        )
        return
    evidence.in_context, evidence.in_context_judged = found.metrics, found.judged
    moved = [
        name
        for name, figure in evidence.worst.metrics.items()
        if name in found.metrics and not alike(found.metrics[name].rms_error, figure.rms_error)
    ]
    evidence.in_context_moved = tuple(moved)
    floors = evidence.floors.target if evidence.floors else {}
    makers = {value: node for value in inv.values if value in golden and (node := inv.model.graph.producer(value))}
    above = [value for value in makers if beyond_fp32(ratio_of(evidence.error(value), floors.get(value)))]
    answer = f"{len(above)} of {len(makers)} tensors are above {MATCH_FACTOR:g}x their floor"
    if above:
        answer += f", the first is '{above[0]}' ({makers[above[0]].op_type})"
    if found.misshapen:
        answer += f"; {len(found.misshapen)} have another shape or type, the first is '{next(iter(found.misshapen))}'"
    answer += "; marking moved the outputs" if moved else "; marking left the outputs as they were"
    if hidden := found.unseen.sentence():
        answer += f"; {hidden}"
    inv.answered(
        QUESTION,
        answer,
        since=since,
        tensors=len(makers),
        above=above[:20],
        outputs_moved_by_marking=moved,
        observation="instrumented",
        refused=dict(found.unseen.refused),
        left_out=list(found.unseen.left_out),
        seen=dict(inv.tally.seen),
    )
