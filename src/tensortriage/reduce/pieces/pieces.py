"""Candidates of a reduction as models: any set of nodes, fed where it was cut.

The outputs of a model change its execution: a value between two nodes that becomes an output can no longer disappear in
their fusion, and with it the fault. So a piece returns its ends only: values that nothing in it uses. Faults inside
show there. It may be cut *marked* as well, with every value that leaves it for an output.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.model.cutting.cut_units import inseparable_units
from tensortriage.model.cutting.extract import extract
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.reduce.request import Ends
from tensortriage.values.spec import ValueSpec


class Pieces:
    """Cuts candidates out of one model.

    Args:
        model: The model; its nodes are the items of the search, those that exchange sequences or maps being one item.
        specs: Types and shapes of its values.
        ends: Which ends may be cut off.
        frozen: Values that become constants where a piece would need them as input: shapes, which engines want known.

    Attributes:
        specs: Types and shapes of its values.
        ends: Which ends may be cut off.
        frozen: Values that become constants where a piece would need them as input.
        items: First node of every item, in topological order.
        weights: Number of nodes of every item that has more than one.
    """

    def __init__(
        self,
        model: Model,
        *,
        specs: Mapping[str, ValueSpec],
        ends: Ends = Ends.BOTH,
        frozen: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.model = model
        self.specs = specs
        self.ends = ends
        self.frozen: Mapping[str, np.ndarray] = frozen or {}
        units = inseparable_units(model)
        self._members = {unit[0].name: tuple(node.name for node in unit) for unit in units}
        self._item_of = {name: item for item, names in self._members.items() for name in names}
        self._place = {node.name: node.index for node in model.graph.nodes}
        self._neighbours: dict[str, tuple[str, ...]] = {}
        self.items: tuple[str, ...] = tuple(self._members)
        self.weights = {unit[0].name: float(len(unit)) for unit in units if len(unit) > 1}

    def item_of(self, node: str) -> str | None:
        """Return the item that a node belongs to; None for Constant nodes, which come along with their users."""
        return self._item_of.get(node)

    def neighbours(self, item: str) -> tuple[str, ...]:
        """Return the items next to an item: the makers of its operands and the users of its results."""
        if item not in self._neighbours:
            self._neighbours[item] = tuple(dict.fromkeys(self._around(item)))
        return self._neighbours[item]

    def _around(self, item: str) -> Iterator[str]:
        graph = self.model.graph
        for name in self._members[item]:
            node = graph.node(name)
            for value in node.uses:
                producer = graph.producer(value)
                if producer is not None and producer.name in self._item_of:
                    yield self._item_of[producer.name]
            for value in node.outputs:
                for user in graph.consumers(value):
                    yield self._item_of[user.name]

    def leading_to(self, item: str) -> frozenset[str]:
        """Return an item with all that leads to it."""
        made = [value for name in self._members[item] for value in self.model.graph.node(name).outputs]
        return self._items(node.name for node in self.model.graph.ancestors(made)) | {item}

    def starting_at(self, item: str, within: Collection[str]) -> frozenset[str]:
        """Return the given items that depend on the operands of an item, itself included."""
        used = [value for name in self._members[item] for value in self.model.graph.node(name).uses]
        fed = [value for value in used if value not in self.model.graph.constants]
        return self._items(node.name for node in self.model.graph.descendants(fed)).intersection(within) | {item}

    def _items(self, nodes: Iterable[str]) -> frozenset[str]:
        return frozenset(self._item_of[name] for name in nodes if name in self._item_of)

    def nodes(self, candidate: Iterable[str]) -> tuple[str, ...]:
        """Return the nodes of a candidate, in topological order, with all that belongs to it by the ends kept."""
        single = len(self._members) == len(self._item_of)
        names = [*candidate] if single else [name for item in candidate for name in self._members[item]]
        if self.ends is not Ends.BOTH:
            graph = self.model.graph
            values = [value for name in names for value in graph.node(name).outputs]
            with_them = graph.ancestors(values) if self.ends is Ends.KEEP_INPUTS else graph.descendants(values)
            names = list({*names, *(node.name for node in with_them if node.name in self._item_of)})
        return tuple(sorted(names, key=self._place.__getitem__))

    def is_whole(self, nodes: Sequence[str]) -> bool:
        """Return whether these are all the nodes there are."""
        return len(nodes) == len(self._item_of)

    def cut(self, nodes: Sequence[str], *, marked: bool = False) -> Model:
        """Return the model of a piece; the model itself, untouched, for all of its nodes.

        Args:
            nodes: As `nodes` returns them.
            marked: Whether it also returns values that nodes both inside and outside use.

        Raises:
            ModelError: When the type of an input is not known (``value-type-unknown``).
        """
        if self.is_whole(nodes):
            return self.model
        piece = extract(self.model, nodes, specs=self.specs, outputs=None if marked else self.results(nodes))
        constants = {spec.name: self.frozen[spec.name] for spec in piece.inputs if spec.name in self.frozen}
        return freeze(piece, constants) if constants else piece

    def results(self, nodes: Collection[str]) -> tuple[str, ...]:
        """Return the values that a piece gives out: outputs of the model, and values that only nodes outside use."""
        graph, inside = self.model.graph, set(nodes)
        if self.is_whole(tuple(nodes)):
            return tuple(spec.name for spec in self.model.outputs)
        own = {spec.name for spec in self.model.outputs}
        unused: list[str] = []
        found: list[str] = []
        for name in nodes:
            for value in filter(None, graph.node(name).outputs):
                users = graph.consumers(value)
                if value in own or (users and not any(user.name in inside for user in users)):
                    found.append(value)
                elif not users:
                    unused.append(value)
        return tuple(found or unused)
