"""Selection of nodes: by name, by range, by operator, or by module of the network."""

import fnmatch
from collections.abc import Sequence

from tensortriage.errors import UsageError, did_you_mean
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph
from tensortriage.model.provenance.path_names import dotted, modules_matching
from tensortriage.model.transforms.rewrite_helpers import nearest_name
from tensortriage.values.text import whole_number


@frozen_dataclass(kw_only=True)
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
