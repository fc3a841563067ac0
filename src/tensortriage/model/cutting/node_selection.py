"""Selection of nodes: by name, by range, by operator, by module of the network, or between two sets of values."""

import dataclasses
import fnmatch
from collections.abc import Collection, Iterable, Sequence

from tensortriage.errors import UsageError, did_you_mean
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.provenance.path_names import dotted, modules_matching
from tensortriage.model.transforms.rewrite_helpers import nearest_name
from tensortriage.values.text import whole_number


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeChoice:
    """Nodes of a main graph, all criteria together (their union).

    Attributes:
        names: Node names and wildcard patterns; where no node is called so, modules, as in ``scopes``.
        ranges: First and last node, inclusive, in topological order; names or positions.
        op_types: Operators, case-insensitive.
        scopes: Modules, e.g. ``encoder.layer.3`` or ``encoder/layer.*/output``, with everything inside.
    """

    names: Sequence[str] = ()
    ranges: Sequence[tuple[str, str]] = ()
    op_types: Sequence[str] = ()
    scopes: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether anything was chosen."""
        return bool(self.names or self.ranges or self.op_types or self.scopes)


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


def choose_nodes(graph: Graph, choice: NodeChoice) -> tuple[str, ...]:
    """Return the names of the chosen nodes, in topological order.

    Raises:
        UsageError: When a criterion matches no node (``node-unknown``, ``op-type-unknown``, ``scope-unknown``) or a
            range ends before it starts (``node-range-empty``).
    """
    picked: set[str] = set()
    for pattern in choice.names:
        picked |= _by_name(graph, pattern)
    for first, last in choice.ranges:
        start, end = _position(graph, first), _position(graph, last)
        if end < start:
            raise UsageError(
                f"node {last!r} comes before {first!r}", slug="node-range-empty", cure="name the earlier node first"
            )
        picked.update(node.name for node in graph.nodes[start : end + 1])
    for word in choice.op_types:
        picked |= _by_operator(graph, word)
    for scope in choice.scopes:
        picked |= _by_scope(graph, scope)
    return tuple(node.name for node in graph.nodes if node.name in picked)


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


def _by_name(graph: Graph, pattern: str) -> set[str]:
    names = [node.name for node in graph.nodes]
    found = {pattern} if pattern in graph else set(fnmatch.filter(names, pattern)) or nodes_of_module(graph, pattern)
    if not found:
        raise UsageError(
            f"the model has no node or module named {pattern!r}",
            slug="node-unknown",
            cure=nearest_name(pattern, [*names, *filter(None, (graph.origin(name).module for name in names))]),
        )
    return found


def nodes_of_module(graph: Graph, pattern: str) -> set[str]:
    """Return the nodes of the modules that a dotted path, or a wildcard pattern of one, means; empty for none."""
    module_of = {node.name: graph.origin(node.name).module for node in graph.nodes}
    modules = modules_matching(pattern, set(module_of.values()))
    return {name for name, module in module_of.items() if module in modules}


def _position(graph: Graph, word: str) -> int:
    if word in graph:
        return graph.node(word).index
    number = whole_number(word)
    if number is not None and number < len(graph.nodes):
        return number
    raise UsageError(
        f"the model has no node {word!r}",
        slug="node-unknown",
        cure=nearest_name(word, [node.name for node in graph.nodes])
        if number is None
        else f"positions go from 0 to {len(graph.nodes) - 1}",
    )


def _by_operator(graph: Graph, word: str) -> set[str]:
    found = {node.name for node in graph.nodes if node.op_type.lower() == word.lower()}
    if not found:
        known = sorted({node.op_type for node in graph.nodes})
        raise UsageError(
            f"the model has no node of type {word!r}",
            slug="op-type-unknown",
            cure=did_you_mean(word, known, otherwise="it has: " + ", ".join(known[:30])),
        )
    return found


def _by_scope(graph: Graph, scope: str) -> set[str]:
    found = nodes_of_module(graph, scope)
    if not found:
        known = sorted(filter(None, {graph.origin(node.name).module for node in graph.nodes}))
        some = "it has, for instance: " + ", ".join(known[:5]) if known else "the exporter wrote no module names"
        raise UsageError(
            f"no node of the model belongs to the module {scope!r}",
            slug="scope-unknown",
            cure=did_you_mean(dotted(scope), known, most=3, otherwise=some),
        )
    return found
