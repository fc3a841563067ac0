"""Does the target's file stand for the reference's network, quantized or narrowed?

Asked of the outputs, before any node is looked for: `tensortriage.envelope.stands_for` evaluates the file as it was
before it was rounded. Where that is the reference's network up to the rounding of its constants, it is the same network
however it was written, and what is left to ask is what rounding costs and whether the engine computes the file.
"""

from tensortriage.compare.judgement.relative_error import say
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.floors import fp32_floors
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.stands_for import MOST_FEEDS, StandsFor, is_rounded
from tensortriage.errors import DataError, EngineError, UsageError

QUESTION = "does the target's file stand for the reference's network?"


@rung(
    QUESTION,
    reads=("beside",),
    gives=("standing", "same_network"),
    cost="seven evaluations of the file in float64",
)
def stands_for_network(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Hold a quantized or narrow file, unrounded, against the reference's network."""
    beside = evidence.beside
    if beside is None or not is_rounded(beside.changed) or is_rounded(inv.model):
        return None
    feeds = inv.question.feeds[:MOST_FEEDS]
    stores = [(feed, inv.golden_outputs(feed)) for feed in feeds]
    own = [spec.name for spec in inv.model.outputs]
    network = [(feed, {name: store[name] for name in own if name in store}) for feed, store in stores]
    try:
        standing = StandsFor.of(inv.lab, beside.changed, network, fp32_floors(inv, feeds[0], own))
    except (EngineError, UsageError, DataError) as error:
        inv.answered(QUESTION, f"unknown: {error.message}")
        return None
    if not standing.outputs:
        return None
    name = standing.worst
    worst = standing.outputs[name]
    apart = f"unrounded, output '{name}' is {say(worst.error)} from it, {say(worst.limit)} by rounding its constants"
    figures = {each: [figure.error, figure.noise, figure.cost] for each, figure in standing.outputs.items()}
    inv.answered(
        QUESTION,
        f"{'yes' if standing.is_same else 'no'}: {apart}",
        error_noise_cost=figures,
        unrounded=str(standing.unrounded),
    )
    return Answer(findings=Findings(standing=standing, same_network=standing.is_same))
