"""The nodes between two sets of values, and the branches that enter a cut from outside."""

import dataclasses
from collections.abc import Collection, Iterable

from tensortriage.model.sdk import Graph, Node


@dataclasses.dataclass(frozen=True, slots=True)
class Dangling:
    """A branch that enters a cut from outside.

    Attributes:
        value: The value at which it enters: to be named as an input.
        node: The node of the cut that uses it.
        origins: The inputs of the model that it depends on.
    """

    value: str
    node: str
    origins: tuple[str, ...]


def nodes_between(
    graph: Graph, inputs: Collection[str], outputs: Collection[str]
) -> tuple[tuple[str, ...], tuple[Dangling, ...]]:
    """Return the nodes that lead from inputs to outputs, and the branches that enter between them from elsewhere.

    Nodes that depend on constants alone belong to the cut. A branch dangles when it depends on an input of the model
    that is not among the inputs.

    Args:
        graph: The graph.
        inputs: Values at which the cut starts.
        outputs: Values at which it ends.
    """
    needed = _needed(graph, inputs, outputs)
    given = set(inputs)
    fed: dict[str, frozenset[str]] = {}  # value -> inputs of the model that it depends on other than through the cut's
    inside: set[int] = set()
    for node in needed:
        outside: set[str] = set()
        for value in node.uses:
            if value not in given and value not in graph.constants:
                outside |= fed.get(value, frozenset({value}) if graph.producer(value) is None else frozenset())
        starts = any(value in given or _is_inside(graph, value, inside) for value in node.uses)
        if starts:
            inside.add(node.index)
        fed.update(dict.fromkeys(filter(None, node.outputs), frozenset(outside)))
    dangling: dict[str, Dangling] = {}
    for node in needed:
        if node.index in inside:
            for value in node.uses:
                if value not in given and not _is_inside(graph, value, inside) and value not in graph.constants:
                    origins = fed.get(value, frozenset({value}) if graph.producer(value) is None else frozenset())
                    if origins:
                        dangling.setdefault(value, Dangling(value, node.name, tuple(sorted(origins))))
    for value in outputs:  # an output that does not depend on any of the inputs
        if value not in given and not _is_inside(graph, value, inside) and fed.get(value):
            producer = graph.producer(value)
            name = producer.name if producer else ""
            dangling.setdefault(value, Dangling(value, name, tuple(sorted(fed[value]))))
    return tuple(node.name for node in needed), tuple(dangling.values())


def _needed(graph: Graph, inputs: Iterable[str], outputs: Iterable[str]) -> tuple[Node, ...]:
    """Return the nodes that outputs depend on, going no further back than inputs, in topological order."""
    given = set(inputs)
    pending = [value for value in outputs if value not in given]
    found: set[int] = set()
    while pending:
        node = graph.producer(pending.pop())
        if node is not None and node.index not in found:
            found.add(node.index)
            pending += [value for value in node.uses if value not in given]
    return tuple(graph.nodes[index] for index in sorted(found))


def _is_inside(graph: Graph, value: str, inside: Collection[int]) -> bool:
    producer = graph.producer(value)
    return producer is not None and producer.index in inside
