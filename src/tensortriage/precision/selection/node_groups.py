"""Nodes whose precision is best changed together: fused nodes, and those that a residual stream adds up.

A typed model that keeps one node of a fused region takes the region apart: its other nodes now round values that they
used to hold in registers, and the engine does worse than rounding explains. Likewise one Add of a residual stream gains
nothing while the Adds behind it narrow the same sum again. So where single nodes do not do on an engine, their groups
are tried.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from tensortriage.engines.base import LARGEST_GROUP, Plan
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.values.grouping import grouped


@dataclasses.dataclass(frozen=True)
class Groups:
    """Nodes that go together.

    Attributes:
        items: All nodes to choose from and those of groups, in topological order.
        sets: Groups of two nodes or more; a node may be in several.
    """

    items: tuple[str, ...]
    sets: tuple[frozenset[str], ...] = ()

    @cached_property
    def _of(self) -> Mapping[str, tuple[frozenset[str], ...]]:
        return {item: tuple(group for group in self.sets if item in group) for item in self.items}

    def closed(self, kept: Iterable[str]) -> list[str]:
        """Return kept nodes, in their order, and behind them the others of their groups, in topological order."""
        chosen = list(kept)
        others = {node for item in chosen for group in self._of.get(item, ()) for node in group}.difference(chosen)
        return [*chosen, *(item for item in self.items if item in others)]

    def units(self) -> tuple[tuple[str, ...], ...]:
        """Return the nodes in units that share no node: groups that overlap are one unit, other nodes stand alone."""
        unit = {item: item for item in self.items}
        place = {item: index for index, item in enumerate(self.items)}

        def root(item: str) -> str:
            while unit[item] != item:
                item = unit[item]
            return item

        for group in self.sets:
            first, *others = sorted(group, key=place.__getitem__)
            for other in others:
                unit[root(other)] = root(first)
        return tuple(map(tuple, grouped((root(item), item) for item in self.items).values()))


def groups_of(
    graph: Graph, items: Sequence[str], movers: Collection[str], regions: Iterable[Collection[str]]
) -> Groups:
    """Return which nodes go together.

    Args:
        graph: The graph.
        items: Nodes to choose from.
        movers: Nodes that only hand numbers on: not chosen by themselves, but with a region that they are fused into.
        regions: Nodes that the engine executes as one, each.
    """
    known = frozenset(items)
    able = known.union(movers)
    largest = LARGEST_GROUP * len(known)
    fused = (able.intersection(region) for region in regions)
    streams = (known.intersection(stream) for stream in residual_streams(graph))
    sets = [group for group in fused if len(group) > 1 and 0 < len(group & known) <= largest]
    sets += [group for group in streams if len(group) > 1]
    wanted = known.union(*sets)
    return Groups(tuple(node.name for node in graph.nodes if node.name in wanted), tuple(dict.fromkeys(sets)))


def fused_nodes(plan: Plan, graph: Graph) -> tuple[tuple[str, ...], ...]:
    """Return the names of the nodes of every region of a plan; engines may name nodes by their outputs."""
    names: list[tuple[str, ...]] = []
    for region in plan.regions:
        found: dict[str, None] = {}
        for word in region.nodes:
            maker = None if word in graph else graph.producer(word)
            found[maker.name if maker is not None else word] = None
        names.append(tuple(found))
    return tuple(names)


def residual_streams(graph: Graph) -> list[tuple[str, ...]]:
    """Return the Adds of every residual stream, in topological order.

    An Add continues with a stream when one operand is the result of the Add before it and the other is computed from
    that.
    """
    stream_of: dict[str, list[str]] = {}
    streams: list[list[str]] = []
    for node in graph.nodes:
        if node.op_type != "Add" or (source := _carried(graph, node)) is None:
            continue
        stream = stream_of.get(source.name)
        if stream is None:
            stream = [source.name] if source.op_type == "Add" else []
            streams.append(stream)
        stream.append(node.name)
        stream_of[node.name] = stream
    return [tuple(stream) for stream in streams if len(stream) > 1]


def _carried(graph: Graph, add: Node) -> Node | None:
    """Return the node that made the Add operand which the other is computed from; None if neither is."""
    makers = [maker for value in add.uses if (maker := graph.producer(value)) is not None]
    if len(makers) != 2:
        return None
    source, other = sorted(makers, key=lambda node: node.index)
    pending, seen = [other], {other.index}
    while pending:  # what lies before the source in topological order cannot depend on it
        for value in pending.pop().uses:
            maker = graph.producer(value)
            if maker is source and source is not other:
                return source
            if maker is not None and maker.index > source.index and maker.index not in seen:
                seen.add(maker.index)
                pending.append(maker)
    return None
