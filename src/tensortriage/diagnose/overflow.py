"""Can the target's number format hold the model's values? Where it cannot, and it matters, nothing else needs blame."""

import math

from tensortriage.compare.figures import say
from tensortriage.diagnose.evidence import Evidence
from tensortriage.diagnose.floors import ROUNDED, floors_of
from tensortriage.diagnose.investigation import Investigation
from tensortriage.diagnose.layerwise import layer_wise
from tensortriage.diagnose.nonfinite import born, explain, floors_in_range, range_scan, wide_nodes
from tensortriage.diagnose.verdict import Verdict, VerdictKind


def out_of_range(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Does the format hold the model's values? If not, and it matters at the outputs, that is the verdict."""
    since = inv.mark()
    feed = evidence.feed
    golden, specs = inv.golden(feed), inv.specs(feed)
    evidence.excess = range_scan(inv, feed)
    evidence.floors = floors_of(inv, inv.model, feed, inv.values, golden=golden, specs=specs, what="every layer")
    question = f"does {inv.precision.value} hold every value?"
    if inv.precision not in ROUNDED:
        return None
    origins = born(inv.model.graph, evidence.floors.emulated, evidence.excess)
    if not origins:
        inv.answered(question, "yes: rounding every result to it leaves all of them finite", since=since)
        return None
    outputs = [name for name in evidence.worst.metrics if name in evidence.floors.target]
    kept = {node.name for node in origins} | wide_nodes(inv.model.graph, evidence.excess)
    in_range = floors_in_range(inv, feed, evidence.floors, kept)
    before, after = (max(floors.target[name] for name in outputs) for floors in (evidence.floors, in_range))
    measured = max(evidence.worst.errors.values())
    matters = before > 2.0 * after and measured > 2.0 * after
    facts = [f"{item.op_type} '{item.node}': {item.magnitude:.3g}" for item in evidence.excess[:10]]
    inv.answered(
        question,
        f"no: {origins[0].op_type} '{origins[0].name}' leaves its range" + ("" if matters else ", without harm"),
        since=since,
        origins=[node.name for node in origins][:20],
        beyond_range=facts,
        predicted_error=before,
        predicted_error_kept_in_fp32=after,
        measured_error=measured,
    )
    if not matters:
        return None
    evidence.floors = in_range
    layer_wise(inv, evidence)
    culprits = [explain(inv, node, feed, evidence.excess) for node in origins]
    first, option = culprits[0], "+".join(sorted(kept))
    return inv.verdict(
        VerdictKind.RANGE_OVERFLOW,
        0.99 if math.isinf(measured) or measured > 0.5 * before else 0.85,
        f"{inv.precision.value} cannot hold {first.op_type} '{first.node}': {first.reason}; with "
        f"{len(kept)} op{'s' * (len(kept) > 1)} kept in fp32 the predicted output error falls from {say(before)} "
        f"to {say(after)}",
        culprits=culprits,
        next=[inv.command("run", "--target", f"emulate:precision={inv.precision.value},kept={option}")],
    )
