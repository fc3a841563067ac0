"""In-context errors of the layers: every value of the target's own run, all of them marked, against the reference's."""

import math
from collections.abc import Mapping

from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.judgement.within import beyond_fp32
from tensortriage.diagnose.measurements.evidence import Findings
from tensortriage.diagnose.measurements.in_context.marked_values import asked_values, marked_figures
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.diagnose.measurements.soundness import WORDS
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.errors import EngineError
from tensortriage.runs.outcome import Outcome

QUESTION = "what do the layers look like?"


def alike(one: float, other: float) -> bool:
    """Return whether two figures are equal; two that could not be computed are."""
    return one == other or (math.isnan(one) and math.isnan(other))


def layers(inv: Investigation, worst: FeedResult, floors: Mapping[str, float]) -> Findings:
    """Return the figures of every layer on the feed that fails worst; nothing where marking them all fails."""
    golden = inv.golden.of(worst.feed)
    try:
        shown = marked_figures(inv, worst.feed)
    except EngineError as error:
        inv.record.answered(
            QUESTION,
            f"unknown: with every tensor marked, the target {WORDS[Outcome.of(error).kind]}",
            reason=error.message,
        )
        return Findings()
    marked = shown.figures
    moved = [
        name
        for name, figure in worst.metrics.items()
        if name in marked.metrics and not alike(marked.metrics[name].rms_error, figure.rms_error)
    ]
    makers = {
        value: node
        for value in asked_values(inv, golden)
        if value in golden and (node := inv.model.graph.producer(value))
    }
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
