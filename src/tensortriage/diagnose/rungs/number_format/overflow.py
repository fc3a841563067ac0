"""Can the target's number format hold the model's values? Where it cannot, and it matters, nothing else needs blame."""

import dataclasses
import math
from collections.abc import Collection, Sequence

from tensortriage.compare.judgement.thresholds import CURED
from tensortriage.compare.judgement.within import is_lost, is_too_coarse
from tensortriage.diagnose.measurements.element_origins.provenance import explain, provenance
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.in_context.layers import layers
from tensortriage.diagnose.measurements.nonfinite_values.nonfinite import (
    Excess,
    born,
    floors_in_range,
    scanned,
    wide_nodes,
)
from tensortriage.diagnose.measurements.suggested_commands import precision_command
from tensortriage.diagnose.rungs.number_format.format_range import excesses, vanishing
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import OVERFLOW_LIKELY, OVERFLOW_PROVEN
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.envelope.floors import floors_of
from tensortriage.envelope.setting import Floors
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.text import error_size, magnitude

MOST_ROUNDS = 4
"""How far upstream of an op that makes a NaN others are kept in fp32 as well."""


@rung(
    "does the format hold every value?",
    reads=("results", "local"),
    gives=("floors", "excess", "in_context", "in_context_moved", "in_context_judged", "kept"),
    cost="an emulation",
    ends=(VerdictKind.RANGE_OVERFLOW,),
)
def out_of_range(inv: Investigation, evidence: Evidence) -> Answer:
    """Does the format hold the model's values? If not, and it matters at the outputs, that is the verdict."""
    feed = evidence.feed
    specs = inv.golden.foreseen_specs(feed)
    floors = floors_of(inv.setting(feed), inv.question.values, specs=specs, what="every layer")
    if inv.precision not in ROUNDED:
        return Answer(findings=Findings(floors=floors, excess=()))
    question = f"does {inv.precision.value} hold every value?"
    found = beyond_the_format(inv, evidence, floors)
    excess, origins, kept, in_range = found.excess, found.origins, found.kept, found.floors
    if not origins:
        inv.record.answered(question, "yes: rounding every result to it leaves all of them finite")
        return Answer(findings=Findings(floors=floors, excess=excess))
    before, after = found.worst(floors), found.worst(in_range)
    measured = max(evidence.worst_feed.errors.values())
    curable = before > CURED * after and measured > CURED * after
    matters = curable or (math.isinf(before) and math.isinf(measured))
    facts = [f"{item.op_type} '{item.node}': {magnitude(item.magnitude)}" for item in excess[:10]]
    inv.record.answered(
        question,
        f"no: {origins[0].op_type} '{origins[0].name}' leaves its range" + ("" if matters else ", without harm"),
        origins=[node.name for node in origins][:20],
        beyond_range=facts,
        predicted_error=before,
        predicted_error_kept_in_fp32=after,
        measured_error=measured,
    )
    if not matters:
        nothing_left = measured <= CURED * after  # the range, on the target
        return Answer(findings=Findings(floors=in_range if nothing_left else floors, excess=excess))
    in_context = layers(inv, evidence.worst_feed, in_range.target)
    rounded = round_results(inv.model, inv.precision, specs=inv.golden.specs(feed), kept=inv.question.kept)
    how = provenance(inv, evidence, origins, spec=PLAIN, model=rounded)
    lost = [item for item in vanishing(scanned(inv, feed), inv.precision) if item.constant and item.node in kept]
    beyond = tuple(dict.fromkeys((*excess, *lost)))
    culprits = [explain(inv, node, feed, beyond, how.get(node.name)) for node in origins]
    first, option = culprits[0], "+".join(sorted({*kept, *inv.question.kept}))
    as_predicted = math.isinf(measured) or measured > 0.5 * before
    verdict = Conclusion(
        VerdictKind.RANGE_OVERFLOW,
        OVERFLOW_PROVEN if curable and as_predicted else OVERFLOW_LIKELY,
        f"{inv.precision.value} cannot hold {first.op_type} '{first.node}': {first.reason}; with "
        f"{len(kept)} op{'s' * (len(kept) > 1)} kept in fp32 the predicted output error "
        + (
            f"falls from {error_size(before)} to {error_size(after)}"
            if curable
            else "stays as it is: more of the model needs fp32"
        ),
        culprits=culprits,
        next=[
            triage_command(inv.question, "run", "--target", f"emulate:precision={inv.precision.value},kept={option}"),
            *precision_command(inv.question),
        ],
    )
    return Answer(verdict, {**in_context, "floors": in_range, "excess": excess, "kept": tuple(sorted(kept))})


@frozen_dataclass
class Beyond:
    """Values beyond a format, and the error with their ops in fp32.

    Attributes:
        outputs: The outputs that have floors.
        excess: Values and constants that the format cannot hold.
        origins: Nodes that are to blame.
        kept: Nodes that are kept in fp32.
        floors: The floors that are then left.
    """

    outputs: tuple[str, ...]
    excess: tuple[Excess, ...]
    origins: tuple[Node, ...]
    kept: frozenset[str]
    floors: Floors

    def worst(self, floors: Floors) -> float:
        """Return the largest floor of an output."""
        return max(floors.target[name] for name in self.outputs)

    def with_more(self, inv: Investigation, floors: Floors, feed: Feed, excess: tuple[Excess, ...]) -> "Beyond":
        """Return it with further values that the format cannot hold; itself where these help nothing."""
        graph, all_of_it = inv.model.graph, (*self.excess, *excess)
        origins = tuple(dict.fromkeys((*self.origins, *(graph.node(item.node) for item in excess))))
        kept, left = enough_kept(inv, floors, feed, origins, wide_nodes(graph, all_of_it), self.outputs)
        more = Beyond(self.outputs, all_of_it, origins, frozenset(kept), left)
        return more if CURED * more.worst(left) < self.worst(self.floors) else self


def beyond_the_format(inv: Investigation, evidence: Evidence, floors: Floors) -> Beyond:
    """Return the values that the target's format turns into Inf, or, where the answer is lost, into 0 or subnormals."""
    graph, feed, rows = inv.model.graph, evidence.feed, scanned(inv, evidence.feed)
    excess = excesses(rows, inv.precision)
    outputs = tuple(name for name in evidence.worst_feed.errors if name in floors.target)
    origins = tuple(born(graph, floors.emulated, excess) or silencing(graph, evidence, excess))
    found = Beyond(outputs, excess, origins, frozenset(), floors)
    if not origins and is_lost(found.worst(floors)) and evidence.worst_feed.lost:
        found = found.with_more(inv, floors, feed, excesses(rows, inv.precision, sums=True))
    if origins:
        kept, left = enough_kept(inv, floors, feed, origins, wide_nodes(graph, excess), outputs)
        found = dataclasses.replace(found, kept=frozenset(kept), floors=left)
    small = vanishing(rows, inv.precision)
    if not small or not evidence.worst_feed.lost:
        return found
    return found.with_more(inv, floors, feed, small) if is_lost(found.worst(found.floors)) else found


def silencing(graph: Graph, evidence: Evidence, excess: Sequence[Excess]) -> list[Node]:
    """Return the nodes that read constants which become Inf, where little of the answer is left though all is finite.

    A quotient by such a constant is 0: a normalization with a variance of 1e8 silences its channel in fp16.
    """
    if not any(map(is_too_coarse, evidence.worst_feed.errors.values())):
        return []
    return list(dict.fromkeys(graph.node(item.node) for item in excess if item.constant))


def enough_kept(
    inv: Investigation,
    floors: Floors,
    feed: Feed,
    origins: Sequence[Node],
    wide: Collection[str],
    outputs: Sequence[str],
) -> tuple[set[str], Floors]:
    """Return nodes that, kept in fp32, take NaN and Inf from the outputs, and the floors that are then left.

    Nodes whose results leave the range come first. An operand that becomes too small for the format (log(0), 1 / 0) has
    its cause upstream: while outputs are not finite, the ops that feed the kept ones are kept as well.
    """
    graph = inv.model.graph
    kept = {node.name for node in origins} | set(wide)
    in_range = floors_in_range(inv, feed, floors, kept)
    for _ in range(MOST_ROUNDS):
        feeding = {maker.name for name in kept for value in graph.node(name).uses if (maker := graph.producer(value))}
        if all(math.isfinite(in_range.target[name]) for name in outputs) or feeding <= kept:
            break
        kept |= feeding
        in_range = floors_in_range(inv, feed, floors, kept)
    return kept, in_range
