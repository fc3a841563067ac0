"""Does the target's file represent the reference's network, quantized or narrowed?

The question is about outputs, before any node is looked for: `tensortriage.envelope.unrounded_match` evaluates the file
as it was before it was rounded. Where that is the reference's network up to the rounding of its constants, it is the
same network however it was written; the cost of rounding, and whether the engine computes the file, are later
questions.
"""

from collections.abc import Mapping

import numpy as np

from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.floors import fp32_floors
from tensortriage.envelope.unrounded_match import enough, is_rounded, match_of_file
from tensortriage.errors import DataError, EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.values.text import error_size

QUESTION = "does the target's file represent the reference's network?"


@rung(
    QUESTION,
    reads=("model_diff",),
    gives=("unrounded_match", "same_network"),
    cost="seven evaluations of the file in float64",
)
def represents_network(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Compare a quantized or narrow file, unrounded, with the reference's network."""
    matched = evidence.model_diff
    if matched is None or not is_rounded(matched.changed) or is_rounded(inv.model):
        return None
    own = [spec.name for spec in inv.model.outputs]
    network: list[tuple[Feed, Mapping[str, np.ndarray]]] = []
    for feed in inv.question.feeds:
        store = inv.golden.outputs(feed)
        network.append((feed, {name: store[name] for name in own if name in store}))
        if enough([outputs for _, outputs in network]):
            break
    floors = fp32_floors(inv.setting(inv.question.feeds[0]), own)
    try:
        match, corrected = match_of_file(inv.lab, matched, network, floors)
    except (EngineError, UsageError, DataError) as error:
        inv.record.answered(QUESTION, f"unknown: {error.message}")
        return None
    if not match.outputs:
        return None
    name = match.worst
    worst = match.outputs[name]
    biases = f" with {corrected} biases as they were before they were corrected for it," if corrected else ""
    limit = f"{error_size(worst.limit)} by rounding its constants"
    apart = f"unrounded,{biases} output '{name}' is {error_size(worst.error)} from it, {limit}"
    figures = {each: [figure.error, figure.noise, figure.cost] for each, figure in match.outputs.items()}
    inv.record.answered(
        QUESTION,
        f"{'yes' if match.is_same else 'no'}: {apart}",
        error_noise_cost=figures,
        unrounded=str(match.unrounded),
    )
    return Answer(findings=Findings(unrounded_match=match, same_network=match.is_same))
