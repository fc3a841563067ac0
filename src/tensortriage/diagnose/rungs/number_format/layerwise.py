"""Where does the error show? Every layer of the instrumented target against the reference, each over its floor.

It is not asked where the answer would change nothing: the outputs are off by what the target's format predicts, and
other builds are no worse: they are the same, or were compared.

Engines that choose kernels by timing them time others where a value is marked inside of what they run as one, which
takes longer than the deployed build and shows another program. Of those, values at the seams of the plan are marked.
"""

import math
from collections.abc import Mapping, Sequence

from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.compare.judgement.thresholds import LARGEST_GROUP, MATCH_FACTOR
from tensortriage.compare.judgement.within import beyond_fp32
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.outputs import FeedResult, noise_of
from tensortriage.diagnose.measurements.soundness import WORDS, builds_vary
from tensortriage.diagnose.rungs.number_format.predicted import settled_by_outputs
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.base import Plan
from tensortriage.engines.capabilities import PinsTactics, VariesBuilds
from tensortriage.engines.registry import resolve
from tensortriage.errors import EngineError
from tensortriage.model.ir.graph import Graph
from tensortriage.runs.outcome import Outcome
from tensortriage.values.store import TensorStore

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
        inv.answered(QUESTION, f"not asked: every output is off by what {noise_of(inv)} predicts")
        return Answer()
    return Answer(findings=layers(inv, evidence.worst_feed, evidence.floors.target if evidence.floors else {}))


def layers(inv: Investigation, worst: FeedResult, floors: Mapping[str, float]) -> Findings:
    """Return the figures of every layer on the feed that fails worst; nothing where marking them all fails."""
    golden = inv.golden(worst.feed)
    asked = asked_values(inv, golden)
    try:
        shown = inv.figures(
            inv.question.target,
            inv.model,
            worst.feed,
            asked,
            golden=golden,
            what=f"every layer on {inv.question.target}",
            tolerances=inv.tolerances,
        )
    except EngineError as error:
        inv.answered(
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
    inv.answered(
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


def asked_values(inv: Investigation, golden: TensorStore) -> Sequence[str]:
    """Return the values of the model to look at on the target: all, or of engines that time kernels those at seams."""
    if not times_kernels(resolve(inv.question.target).engine):
        return inv.values
    plan = inv.lab.plan(inv.question.target, inv.model)
    if plan is None or not any(region.nodes for region in plan.regions):
        return inv.values
    outputs, inputs = {spec.name for spec in inv.model.outputs}, [spec.name for spec in inv.model.inputs]
    floats = {name for name in golden.names() if (dtype := golden.spec(name).dtype) is not None and dtype.is_float}
    wanted = outputs | (floats - hidden_values(plan, inv.model.graph, inputs))
    return [value for value in inv.values if value in wanted]


def times_kernels(engine: object) -> bool:
    """Whether an engine times kernels: it tells which it chose, and that another build may choose others."""
    return isinstance(engine, PinsTactics) and isinstance(engine, VariesBuilds)


def hidden_values(plan: Plan, graph: Graph, inputs: Sequence[str]) -> set[str]:
    """Return the values that no run of a plan makes: inside of what runs as one, and constants and shapes.

    A region of most nodes is no single kernel: what a compiler made of it has layers that its plan does not tell.

    Args:
        plan: What the engine runs.
        graph: Index of the model.
        inputs: Names of the model's inputs: what does not depend on them is constant.
    """
    region_of = {word: number for number, region in enumerate(plan.regions) for word in region.nodes}
    most, computed = LARGEST_GROUP * len(graph.nodes), {node.name for node in graph.descendants(tuple(inputs))}
    hidden = {value for node in graph.nodes if node.name not in computed for value in node.outputs} | graph.shape_like
    for node in graph.nodes:
        region = region_of.get(node.name)
        if region is not None and len(plan.regions[region].nodes) <= most:
            within = (v for v in node.outputs if {region_of.get(u.name) for u in graph.consumers(v)} == {region})
            hidden.update(within)
    return hidden
