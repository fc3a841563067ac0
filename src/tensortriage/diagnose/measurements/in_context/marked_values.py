"""Values of a model to show on a target, chosen so that it still runs its deployed program.

Engines that choose kernels by timing them time others where a value is marked inside a fused region, which takes longer
than the deployed build and shows another program. On those, values at the seams of the plan are marked.
"""

from collections.abc import Sequence

from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.base import LARGEST_GROUP, Plan
from tensortriage.engines.capabilities import PinsTactics, VariesBuilds
from tensortriage.engines.registry import resolve
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph
from tensortriage.runs.observation.experiment import Measurement, ObservedFigures
from tensortriage.values.store import TensorStore


def asked_values(inv: Investigation, golden: TensorStore) -> Sequence[str]:
    """Return the values of the model to look at on the target: all, or of engines that time kernels those at seams."""
    if not times_kernels(resolve(inv.question.target).engine):
        return inv.question.values
    plan = inv.lab.plan(inv.question.target, inv.model)
    if plan is None or not any(region.nodes for region in plan.regions):
        return inv.question.values
    outputs, inputs = {spec.name for spec in inv.model.outputs}, [spec.name for spec in inv.model.inputs]
    floats = {name for name in golden.names() if (dtype := golden.spec(name).dtype) is not None and dtype.is_float}
    wanted = outputs | (floats - hidden_values(plan, inv.model.graph, inputs))
    return [value for value in inv.question.values if value in wanted]


def marked_figures(inv: Investigation, feed: Feed, *, build: int = 0) -> Measurement:
    """Return figures of every value in a build with all of them marked.

    Raises:
        EngineError: When the target does not build or run so.
    """
    golden, target = inv.golden.of(feed), inv.question.target
    return inv.lab.figures(
        target,
        inv.model,
        feed,
        ObservedFigures(asked_values(inv, golden), golden, inv.question.tolerances, partly=True),
        what=f"every layer on {target}",
        build=build,
    )


def times_kernels(engine: object) -> bool:
    """Return whether an engine times kernels: it reports its choices, and that another build may choose others."""
    return isinstance(engine, PinsTactics) and isinstance(engine, VariesBuilds)


def hidden_values(plan: Plan, graph: Graph, inputs: Sequence[str]) -> set[str]:
    """Return the values that no run of a plan makes: those inside fused regions, and constants and shapes.

    A region of most nodes is no single kernel: the compiler divides it into layers that its plan does not report.

    Args:
        plan: The engine's plan.
        graph: Index of the model.
        inputs: Names of the model's inputs: values that do not depend on them are constant.
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
