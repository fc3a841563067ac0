"""Which nodes that only pass values on (Reshape, Transpose, Relu, ...) are kept together with their neighbours.

Such a node has no error of its own, so it is never searched for; but between two kept nodes it must not narrow its
operand, and a Cast before it and another one behind it would be two too many. So it is kept exactly when it lies on a
way from a kept node (or a model input) to a kept node (or a model output) on which nothing is rounded anyway. All else
gets as few Casts as the kept nodes themselves demand: one per value that is made in one type and read in the other.
"""

import dataclasses
from collections.abc import Collection
from functools import cached_property

from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model

_ANY_TYPE = frozenset({"Shape", "Size", "Cast", "CastLike"})
"""Operators that take a value in whatever type it has."""


@dataclasses.dataclass(frozen=True)
class Islands:
    """Completes sets of kept nodes.

    Attributes:
        lowerable: Nodes that can compute in the lower format.
        rounding: The nodes that round their result; the others pass numbers on.
    """

    model: Model
    lowerable: frozenset[str]
    rounding: frozenset[str]

    @cached_property
    def _movers(self) -> tuple[Node, ...]:
        names = self.lowerable - self.rounding
        return tuple(node for node in self.model.graph.nodes if node.name in names)

    def carriers(self, kept: Collection[str]) -> frozenset[str]:
        """Return the nodes that hand numbers on between nodes that compute in the higher precision.

        Args:
            kept: Nodes that do.
        """
        wide = frozenset(kept)
        free = [node for node in self._movers if node.name not in wide]
        if not free:
            return frozenset()
        graph = self.model.graph
        inputs = {spec.name for spec in self.model.inputs}
        outputs = {spec.name for spec in self.model.outputs}
        names = {node.name for node in free}
        fed: set[str] = set()
        for node in free:
            sources = ((value, graph.producer(value)) for value in node.uses if value not in graph.constants)
            if any(
                value in inputs if maker is None else maker.name in fed or self._makes_wide(maker, wide, names, graph)
                for value, maker in sources
            ):
                fed.add(node.name)
        read: set[str] = set()
        for node in reversed(free):
            users = [user for value in node.outputs for user in graph.consumers(value)]
            if not outputs.isdisjoint(node.outputs) or any(
                user.name in read or self._reads_wide(user, wide, names) for user in users
            ):
                read.add(node.name)
        return frozenset(fed & read)

    def _makes_wide(self, maker: Node, wide: frozenset[str], free: set[str], graph: Graph) -> bool:
        if maker.name in free or maker.op_type == "Constant" or not graph.shape_like.isdisjoint(maker.outputs):
            return False
        return maker.name in wide or maker.name not in self.lowerable

    def _reads_wide(self, user: Node, wide: frozenset[str], free: set[str]) -> bool:
        if user.name in free or user.op_type in _ANY_TYPE:
            return False
        return user.name in wide or user.name not in self.lowerable
