"""Which sets of ops are tried together: the target's own regions first, then windows from small to large.

A fused region of the target's plan is the likeliest place of a fusion fault. Where there is no plan, or it is no help,
windows are: around the ops where the error of the instrumented run jumps (when instrumenting left the failure as it
was), and tiles of the topological order, at each size twice, shifted by half a tile, so that any stretch of half a tile
lies within one of them. The sets of a round do not overlap, so a round costs one build.
"""

from collections.abc import Collection, Iterator, Sequence

from tensortriage.compare.judgement.relative_error import ratio_of
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.base import Plan
from tensortriage.engines.float64.function_accuracy import ACCURACIES
from tensortriage.engines.spec import Hardware
from tensortriage.errors import EngineError
from tensortriage.model.ir.graph import Graph

SMALLEST_TILE = 4
GROWTH = 4
"""Tiles have 4, 16, 64, ... ops: each size costs two builds, and wrong tiles are shrunk afterwards anyway."""

SEEDS = 3
"""Jumps of the in-context error around which windows are grown."""

FUNCTIONS = "functions with the ops that feed them"
"""The round of `functions_with_makers`."""

Round = tuple[str, list[tuple[str, ...]]]
"""The kind of the sets in words, and the sets."""


def rounds(inv: Investigation, evidence: Evidence, nodes: Sequence[str], *, trusted: bool) -> Iterator[Round]:
    """Yield sets of nodes to be tried together, the likeliest and cheapest first.

    Args:
        inv: The investigation.
        evidence: In-context errors and floors, where they were measured.
        nodes: The nodes that can be run on golden values, in topological order.
        trusted: Whether the instrumented run fails as the deployed one does, so that its figures count.
    """
    graph, fixed = inv.model.graph, made_of_constants(inv.model.graph)
    own = [name for name in nodes if name not in fixed]
    for words, sets in _rounds(inv, evidence, own, trusted=trusted):
        yield words, completed(graph, sets, fixed & {*nodes})


def _rounds(inv: Investigation, evidence: Evidence, nodes: Sequence[str], *, trusted: bool) -> Iterator[Round]:
    known = FUNCTIONS, [piece.nodes for piece in evidence.wrong_together]
    if known[1]:
        yield known
    if regions := regions_of(inv, nodes):
        yield "regions", regions
    if not known[1] and (pieces := functions_with_makers(inv, nodes)):
        yield FUNCTIONS, pieces
    graph = inv.model.graph
    if trusted and (seeds := jumps(inv, evidence, nodes)):
        radius = 1
        while sets := disjoint(neighbourhood(graph, [seed], radius, nodes) for seed in seeds):
            yield f"windows of radius {radius} around the largest jumps", sets
            if max(map(len, sets)) * 2 > len(nodes):
                break
            radius *= 2
    yield from tiles(nodes)


def made_of_constants(graph: Graph) -> frozenset[str]:
    """Return the nodes that compute with constants alone, such as dequantizers of weights."""
    found: set[str] = set()
    for node in graph.nodes:
        makers = [graph.producer(value) for value in node.uses if value not in graph.constants]
        if all(made is not None and made.name in found for made in makers):
            found.add(node.name)
    return frozenset(found)


def completed(graph: Graph, sets: Sequence[Sequence[str]], fixed: Collection[str]) -> list[tuple[str, ...]]:
    """Return sets with the fixed nodes that make their operands: without these a target builds other kernels."""
    left, found = {*fixed}.difference(*sets), []
    for item in sets:
        whole, edge = {*item}, {*item}
        while edge := {name for each in edge for name in _makers(graph, each)} & left:
            whole |= edge
            left -= edge
        found.append(tuple(sorted(whole, key=lambda name: graph.node(name).index)))
    return found


def _makers(graph: Graph, name: str) -> set[str]:
    return {made.name for value in graph.node(name).uses if (made := graph.producer(value)) is not None}


def tiles(nodes: Sequence[str]) -> Iterator[Round]:
    """Yield stretches of the topological order from small to large, each size in two positions."""
    size = SMALLEST_TILE
    while size < len(nodes):
        for start in (0, -(size // 2)):
            sets = [tuple(nodes[max(at, 0) : at + size]) for at in range(start, len(nodes), size)]
            yield f"windows of {size} ops", [item for item in sets if len(item) > 1]
        size *= GROWTH


def regions_of(inv: Investigation, nodes: Collection[str]) -> list[tuple[str, ...]]:
    """Return the regions of several nodes that the target reports for the deployed model."""
    try:
        plan = inv.lab.plan(inv.question.target, inv.model)
    except EngineError:
        return []
    return disjoint(multiple(plan, nodes)) if plan else []


def functions_with_makers(inv: Investigation, nodes: Collection[str]) -> list[tuple[str, ...]]:
    """Return the target's regions around a function, each with the regions that make its operands.

    A plan may be that of a front end, whose compiler fuses on: most often a product, its bias and the activation behind
    them.
    """
    try:
        plan = inv.lab.plan(inv.question.target, inv.model)
    except EngineError:
        return []
    if plan is None:
        return []
    graph, known = inv.model.graph, {*nodes}
    named = {node.name for node in graph.nodes}  # a plan may name values instead, or what the engine itself put in
    regions = [tuple(name for name in region.nodes if name in named) for region in plan.regions]
    region_of = {name: region for region in regions for name in region}
    functions = ACCURACIES[Hardware.CPU].keys()  # those that no hardware computes exactly

    def pieces() -> Iterator[tuple[str, ...]]:
        for region in regions:
            if not any(graph.node(name).op_type in functions for name in region):
                continue
            makers = {maker for name in region for maker in _makers(graph, name)}
            whole = {*region, *(name for maker in makers for name in region_of.get(maker, ()))} & known
            yield tuple(sorted(whole, key=lambda name: graph.node(name).index))

    return disjoint(pieces())


def multiple(plan: Plan, nodes: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield the regions of a plan that hold several of given nodes."""
    known = {*nodes}
    for region in plan.regions:
        kept = tuple(name for name in region.nodes if name in known)
        if len(kept) > 1:
            yield kept


def disjoint(sets: Iterator[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return sets that share no node; of two that do, the first."""
    covered: set[str] = set()
    found = []
    for item in sets:
        if len(item) > 1 and covered.isdisjoint(item):
            covered.update(item)
            found.append(item)
    return found


def jumps(inv: Investigation, evidence: Evidence, nodes: Collection[str]) -> list[str]:
    """Return the nodes at which error over floor grows most from operands to result, the largest jump first."""
    floors = evidence.floors.target if evidence.floors else {}
    ratios = {value: ratio_of(evidence.error(value), floors.get(value)) or 0.0 for value in inv.question.values}
    grown: dict[str, float] = {}
    for name in nodes:
        node = inv.model.graph.node(name)
        before = max([1.0, *(ratios[value] for value in node.uses if value in ratios)])
        after = max((ratios.get(value, 0.0) for value in node.outputs), default=0.0)
        if after > before:
            grown[name] = after / before
    return sorted(grown, key=lambda name: -grown[name])[:SEEDS]


def neighbourhood(graph: Graph, seeds: Collection[str], radius: int, nodes: Collection[str]) -> tuple[str, ...]:
    """Return the nodes at most some steps away from seeds, upstream or downstream, in topological order."""
    known, found, edge = {*nodes}, {*seeds}, {*seeds}
    for _ in range(radius):
        edge = {other for name in edge for other in neighbours(graph, name)} & known - found
        found |= edge
    return tuple(sorted(found, key=lambda name: graph.node(name).index))


def neighbours(graph: Graph, name: str) -> set[str]:
    """Return the nodes that a node takes values from or gives values to."""
    return _makers(graph, name) | {user.name for value in graph.node(name).outputs for user in graph.consumers(value)}
